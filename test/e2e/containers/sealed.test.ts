/**
 * Values of secrets appear nowhere in clear text, and a value that fails is taken back, on real
 * programs (ADR 37).
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Container } from '../../../schemas/api/container.ts';
import type { Client } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { imageRunning } from '../support/images.ts';
import { startRig } from '../support/rig.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';
const quick = { UPDATE_VERIFY: '1s', STOP_GRACE: '2s', RESTART_BACKOFF_MIN: '200ms' };
const sum = (text: string): string => createHash('sha256').update(text).digest('hex');
/** Prints only checksums of its values, and ends at once if the file says so. */
const script =
  'echo "file $(sha256sum < /run/db)"; echo "env $(printf %s "$TOKEN" | sha256sum)"; ls -l /run/db; ' +
  "grep -q broken /run/db && exit 3; trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done";

const linesOf = async (client: Client, { id }: { id: string }): Promise<string> =>
  (await client.call('GET', `${compute}/${id}/logs?limit=500`)).text;

const says = (client: Client, container: { id: string }, what: string) =>
  eventually(
    what,
    () => linesOf(client, container),
    (text) => text.includes(what),
  );

/** The update to this version of the secret has reached its end, and the container runs. */
const ended = (client: Client, container: { id: string }, version: number) =>
  eventually(
    `the end of the update to version ${version}`,
    () => client.status(container),
    ({ body: { data } }) =>
      (data.update?.phase === 'done' || data.update?.phase === 'rolled_back') &&
      data.update.to.secrets?.env['TOKEN']?.version === version &&
      data.status === 'running',
  );

/** Files below the folder that contain one of the texts. */
function filesWith(folder: string, texts: readonly string[]): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .filter((path) => texts.some((text) => readFileSync(path).includes(text)));
}

t.test('secrets', async (t) => {
  const rig = await startRig(t, {
    agent: quick,
    gateway: { VAULT_KEYS: `k1:${Buffer.alloc(32, 9).toString('base64')}` },
  });
  const acme = await rig.client('acme');
  const values = ['first-v4lue-of-the-secret', 'second-v4lue-of-the-secret', 'broken-v4lue-of-the-secret'] as const;
  const put = async (value: string) => {
    const { status } = await acme.call('PUT', `${compute}/secrets/db`, { value });
    t.ok(status === 200 || status === 201, String(status));
  };
  await put(values[0]);
  const body = { name: 'web', ...(await imageRunning(rig, script)), cpu_limit: '0.1', mem_limit: '16m' };
  const made = await acme.call<{ data: Container }>('POST', `${compute}?start=false`, body);
  const web = made.body.data;
  const uses = { env: { TOKEN: 'db' }, files: { '/run/db': { secret: 'db', mode: 0o440 } } };
  t.equal((await acme.call('PUT', `${compute}/${web.id}/secrets`, uses)).status, 200);
  t.equal((await acme.call('POST', `${compute}/${web.id}/start`)).status, 200);

  await t.test('the container has its values, as a variable and as a file', async (t) => {
    await says(acme, web, `file ${sum(values[0])}`);
    await says(acme, web, `env ${sum(values[0])}`);
    t.match(await linesOf(acme, web), /-r--r-----/);
  });

  await t.test('another value: an update', async (t) => {
    await put(values[1]);
    const { body: status } = await ended(acme, web, 2);
    t.match(status.data.update, { phase: 'done', from: { secrets: { env: { TOKEN: { name: 'db', version: 1 } } } } });
    await says(acme, web, `file ${sum(values[1])}`);
    await says(acme, web, `env ${sum(values[1])}`);
  });

  await t.test('a value that it ends with is taken back', async (t) => {
    await put(values[2]);
    const { body: status } = await ended(acme, web, 3);
    t.match(status.data.update, { phase: 'rolled_back' });
    const { body: secrets } = await acme.call('GET', `${compute}/secrets`);
    t.match(secrets, { data: [{ name: 'db', version: 3, used_by: [web.id] }] });
  });

  await t.test('no value is in clear text in an answer, on NATS’ disk or on the agent’s', async (t) => {
    const texts = values.flatMap((value) => [value, Buffer.from(value).toString('base64').replace(/=+$/, '')]);
    const answers = await Promise.all(
      ['', '/secrets', `/${web.id}`, `/${web.id}/secrets`, `/${web.id}/status`, `/${web.id}/events`, '/events'].map(
        async (path) => (await acme.call('GET', `${compute}${path}`)).text,
      ),
    );
    t.same(
      texts.filter((text) => answers.join('\n').includes(text)),
      [],
    );
    t.same(filesWith(join(rig.nats.credsFile, '../../jetstream'), texts), []);
    t.same(filesWith(rig.agentFolder('h1'), texts), []);
  });
});
