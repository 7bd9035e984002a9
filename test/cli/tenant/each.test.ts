import t from 'tap';
import { InterruptedError } from '../../../cli/client/errors.ts';
import type { Context } from '../../../cli/context.ts';
import { each } from '../../../cli/tenant/each.ts';

/** Fails for names that begin with `no` and for `ctrl-c`; keeps what is printed. */
function attempt() {
  const said: string[] = [];
  const context = { show: (_: unknown, text: string) => said.push(text), tell: (text: string) => said.push(text) };
  const work = (name: string): Promise<string> =>
    name === 'ctrl-c'
      ? Promise.reject(new InterruptedError())
      : name.startsWith('no')
        ? Promise.reject(new Error(`no ${name}`))
        : Promise.resolve(name);
  const run = (names: readonly string[]): Promise<void> => each(context as unknown as Context, names, work);
  return { said, run };
}

t.test('each is tried, and failures are told in their order', async (t) => {
  const { said, run } = attempt();
  await t.rejects(run(['a', 'no1', 'b', 'no2', 'no3']), { message: 'no no3' });
  t.same(said, ['a\nb', 'no no1', 'no no2']);
});

t.test('Ctrl-C ends it, after what failed before is told', async (t) => {
  const { said, run } = attempt();
  await t.rejects(run(['a', 'no1', 'ctrl-c', 'b']), { name: 'InterruptedError' });
  t.same(said, ['a', 'no no1']);
});
