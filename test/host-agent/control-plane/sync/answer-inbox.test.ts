import t from 'tap';
import type { Msg, NatsConnection, Subscription, SubOpts } from '@nats-io/transport-node';
import { hearAnswers } from '../../../../host-agent/control-plane/sync/answer-inbox.ts';

function connection() {
  const subjects: string[] = [];
  let callback: SubOpts<Msg>['callback'];
  const nc: Partial<NatsConnection> = {
    subscribe: (subject: string, options?: SubOpts<Msg>) => {
      subjects.push(subject);
      callback = options?.callback;
      return {} as Partial<Subscription> as Subscription;
    },
  };
  const say = (error: Error | null, message: Partial<Msg>): void => void callback?.(error, message as Msg);
  return { nc: nc as NatsConnection, subjects, say };
}

t.test('asks of a connection share a subscription, and each hears its own answers until it ends', (t) => {
  const { nc, subjects, say } = connection();
  const heard: string[] = [];
  const one = hearAnswers(nc, '_INBOX_U', () => heard.push('one'));
  const two = hearAnswers(nc, '_INBOX_U', () => heard.push('two'));
  t.equal(subjects.length, 1);
  t.match(subjects[0], /^_INBOX_U\.[0-9a-f]{32}\.\*$/);
  t.not(one.subject, two.subject);
  for (const { subject } of [one, two]) t.ok(subject.startsWith(String(subjects[0]).slice(0, -1)), 'below it');
  say(null, { subject: two.subject });
  say(null, { subject: one.subject });
  say(null, { subject: `${one.subject}0` });
  t.same(heard, ['two', 'one']);
  one.end();
  say(null, { subject: one.subject });
  t.same(heard, ['two', 'one']);
  t.not(hearAnswers(connection().nc, '_INBOX_U', () => {}).subject, one.subject);
  t.end();
});

t.test('a subscription that the server ends is made again for the next ask', (t) => {
  const { nc, subjects, say } = connection();
  const heard: (string | undefined)[] = [];
  hearAnswers(nc, '_INBOX_U', (error) => heard.push(error?.message));
  say(new Error('permissions violation'), {});
  t.same(heard, ['permissions violation']);
  const next = hearAnswers(nc, '_INBOX_U', (error) => heard.push(error?.message));
  t.equal(subjects.length, 2);
  t.equal(new Set(subjects).size, 2);
  say(null, { subject: next.subject });
  t.same(heard.slice(1), [undefined]);
  t.end();
});
