/** `Idempotency-Key`, on every POST of a tenant of the route table. */
import t from 'tap';
import { isRepeatable } from '../../../../schemas/routes.ts';
import { sharedStack } from '../../support/stack.ts';
import { worldOf, writes, type WriteName } from './writes.ts';

t.setTimeout(300_000);
const used = { status: 409, body: { error: 'conflict', reason: 'key_used' } };
/** Writes whose answers show a secret once. */
const secret: ReadonlySet<WriteName> = new Set<WriteName>([
  'key.create',
  'peer.create',
  'peer.rotate',
  'peer.password',
  'peer.token.create',
  'peer.link.create',
]);

const idIn = (body: unknown) => (body as { data: { id: string } }).data.id;

t.test('idempotency', async (t) => {
  const rig = await sharedStack(t);
  const world = await worldOf(rig);
  const { acme } = world;
  const key = (text: string) => ({ 'idempotency-key': text });

  for (const route of writes.filter(isRepeatable)) {
    t.test(`${route.method} ${route.path}`, async (t) => {
      const { name } = route;
      const request = await world.request(name);
      const first = await world.send(name, request, key(name));
      t.ok(first.status < 300, first.text);
      const again = await world.send(name, request, key(name));
      // A container is shown as it is now.
      const shown = ({ body }: typeof first) => (secret.has(name) ? body : idIn(body));
      t.same([again.status, shown(again)], [first.status, shown(first)], 'the same answer');
      for (const header of ['etag', 'location', 'longshore-generation'])
        t.equal(again.headers.get(header), first.headers.get(header), header);
      const other = await world.request(name);
      t.match(await world.send(name, other, key(name)), {
        status: 422,
        body: { details: { idempotency_key: ['was used with a different body'] } },
      });
      const both = await world.request(name);
      const [one, two] = await Promise.all([
        world.send(name, both, key(`${name}-twice`)),
        world.send(name, both, key(`${name}-twice`)),
      ]);
      t.same(shown(one), shown(two), 'twice at one time');
      t.match(await world.send(name, both, key('a b')), { status: 422 });
      const colleague = await rig.client(world.tenant);
      const theirs = await colleague.call(route.method, request.path, request.body, key(name));
      if (secret.has(name)) t.match(theirs, used, 'a secret is its maker’s');
      else t.same([theirs.status, idIn(theirs.body)], [first.status, idIn(first.body)], 'anybody of the tenant');
      const reader = await rig.client(world.tenant, 'read');
      t.equal((await reader.call(route.method, request.path, request.body, key(name))).status, 403, 'scopes first');
    });
  }

  t.test('an answer with a secret ends with its resource', async (t) => {
    const request = await world.request('key.create');
    const made = await world.send('key.create', request, key('ends'));
    t.equal((await acme.call('DELETE', made.headers.get('location') ?? '')).status, 204);
    t.match(await world.send('key.create', request, key('ends')), used);
    const peer = await world.request('peer.password');
    const password = await world.send('peer.password', peer, key('old'));
    t.equal((await world.send('peer.password', peer)).status, password.status);
    t.match(await world.send('peer.password', peer, key('old')), used, 'there is another password');
  });
});
