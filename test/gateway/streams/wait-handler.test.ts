import t from 'tap';
import { judgeWait } from '../../../gateway/streams/wait-handler.ts';
import { okData, refusal, statusView } from '../support.ts';

t.test('a status ends a wait, keeps it waiting or refuses it', (t) => {
  const view = statusView('i', 'pending') as never;
  const is = (status: string) => okData(statusView('i', status));
  const stepOf = (wanted: string, outcome: ReturnType<typeof refusal>, last?: never): string => {
    const step = judgeWait(wanted, outcome, last);
    return step.kind === 'wait' ? 'wait' : step.outcome.code;
  };
  t.equal(stepOf('running', is('running')), 'ok');
  t.equal(stepOf('running', is('pending')), 'wait');
  t.equal(stepOf('running', is('failed')), 'wait', 'a start may still make it run');
  t.equal(stepOf('running', is('removing')), 'conflict');
  t.equal(stepOf('removing', is('removing')), 'ok');
  t.equal(stepOf('removed', is('removing')), 'wait');
  t.equal(stepOf('removed', refusal('not_found')), 'not_found', 'this gateway never saw it');
  t.equal(stepOf('removed', refusal('not_found'), view), 'ok');
  t.equal(stepOf('running', refusal('not_found'), view), 'not_found');
  t.equal(stepOf('running', refusal('unavailable'), view), 'wait');
  t.end();
});
