/** A CI job that deploys: it is red when what it deployed does not run, and says why. */
import t from 'tap';
import { dataOf, writtenOf, type Api, type Schemas } from '../../../cli/client/api.ts';
import { create, groundOf, idOf, settled, small } from './program.ts';

t.setTimeout(300_000);

interface Deployed {
  readonly isGreen: boolean;
  readonly says: string;
}

/** Deploys a change of the document: image, variables and command change together. */
async function deploy(api: Api, name: string, change: Schemas['ContainerSpecPatch']): Promise<Deployed> {
  const id = await idOf(api, name);
  const params = { path: { id } };
  const { generation } = await writtenOf(api.PATCH('/api/v2/containers/{id}/spec', { params, body: change }));
  const { outcome, update } = await settled(api, id, generation);
  return { isGreen: outcome === 'done', says: [outcome, update?.reason].filter((word) => word != null).join(': ') };
}

/** Brings back what ran before the newest version that did not fail. */
async function rollBack(api: Api, name: string): Promise<Deployed> {
  const id = await idOf(api, name);
  const params = { path: { id } };
  const versions = await dataOf(api.GET('/api/v2/compute/{id}/versions', { params }));
  const [, last] = versions.filter(({ outcome }) => outcome === 'done');
  if (last === undefined) return { isGreen: false, says: 'there is no earlier version' };
  const body = { version: last.version };
  const { generation } = await writtenOf(api.POST('/api/v2/compute/{id}/rollback', { params, body }));
  const { outcome } = await settled(api, id, generation);
  return { isGreen: outcome === 'done', says: `${outcome}: version ${last.version}` };
}

t.test('each job reports the outcome of its own deploy', async (t) => {
  const { api, image, imageOf } = await groundOf(t, 'deploy');
  const made = await create(api, { name: 'web', image, ...small });
  t.equal((await settled(api, made.data.id, made.generation)).outcome, 'done');

  t.same(await deploy(api, 'web', { env: { V: '2' } }), { isGreen: true, says: 'done' });
  const broken = await deploy(api, 'web', { image: await imageOf('exit 3'), env: { V: '3' } });
  t.match(broken, { isGreen: false, says: /^rolled_back: \w+$/ });
  t.same(await deploy(api, 'web', { env: { V: '4' } }), { isGreen: true, says: 'done' }, 'not the failure before');

  const first = deploy(api, 'web', { env: { V: '5' } });
  const second = deploy(api, 'web', { env: { V: '6' } });
  const both = (await Promise.all([first, second])).map(({ says }) => says).sort();
  t.same(both, ['done', 'superseded'], 'of two at once, one knows that the other came after it');

  const { env: before } = await dataOf(
    api.GET('/api/v2/containers/{id}/spec', { params: { path: { id: made.data.id } } }),
  );
  t.match(await rollBack(api, 'web'), { isGreen: true, says: /^done: version \d+$/ });
  const after = await dataOf(api.GET('/api/v2/containers/{id}/spec', { params: { path: { id: made.data.id } } }));
  t.not(after.env['V'], before['V']);
});
