/** A nightly backup: what a program in the container writes is the backup, if it ends well. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { answerOf, dataOf, type Api } from '../../../cli/client/api.ts';
import { ApiError } from '../../../cli/client/errors.ts';
import { create, groundOf, idOf, settled, small } from './program.ts';

t.setTimeout(300_000);

/** @throws Error if the program failed, or wrote more than an answer holds */
async function backUp(api: Api, name: string, command: string[], night: string): Promise<string> {
  const id = await idOf(api, name);
  // A repeat of this request never runs the program a second time.
  const params = { path: { id }, header: { 'Idempotency-Key': `backup-${night}` } };
  const asked = dataOf(api.POST('/api/v2/compute/{id}/runs', { params, body: { command, timeout: 60 } }));
  const { exit_code: code, stdout, stderr, truncated } = await asked;
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr.trim()}`);
  if (truncated) throw new Error('it is larger than 1 MiB');
  return stdout;
}

t.test('a backup is what the program wrote, and a failure is no backup', async (t) => {
  const { api, image } = await groundOf(t, 'backup');
  const { data, generation } = await create(api, { name: 'db', image, ...small });
  await settled(api, data.id, generation);
  // The sum of the lines 1 to 2,000, as made here.
  const dump = `${Array.from({ length: 2_000 }, (_, at) => String(at + 1)).join('\n')}\n`;
  const taken = await backUp(api, 'db', ['seq', '2000'], 'one');
  const sumOf = (text: string): string => createHash('sha256').update(text).digest('hex');
  t.equal(sumOf(taken), sumOf(dump));
  await t.rejects(backUp(api, 'db', ['sh', '-c', 'echo half; echo no room >&2; exit 7'], 'two'), {
    message: 'exit code 7: no room',
  });
  await t.rejects(backUp(api, 'db', ['no-such-program'], 'three'), { message: /^exit code 127/ });
  await t.rejects(backUp(api, 'db', ['seq', '1000000'], 'four'), { message: 'it is larger than 1 MiB' });
  const again = await backUp(api, 'db', ['seq', '2000'], 'one').catch((error: unknown) => error);
  t.equal(again instanceof ApiError && again.status, 409, 'the night has its backup');
  await answerOf(api.DELETE('/api/v2/compute/{id}', { params: { path: { id: data.id } } }));
});
