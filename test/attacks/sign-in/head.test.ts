/**
 * Programs that look at links (of mail, of chats) send HEAD before a person does: it must sign
 * nobody in, use up no code, and write nothing (RFC 9110 section 9.2.1). All routes are tried.
 */
import t from 'tap';
import { makeSignInLink } from '../../../dev/demo/sign-in.ts';
import { routes, type Route } from '../../../schemas/routes.ts';
import { memoryOwner, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { startSignIn, tokenIn } from './support.ts';

const { gateway, links, send, begin } = await startSignIn(t);

t.test('HEAD of a one-time link leaves it whole', async (t) => {
  const { pathname, search } = new URL(makeSignInLink(links, gateway.url, Date.now()));
  const head = await send(pathname + search, { method: 'HEAD' });
  t.match(head, { status: 405, cookies: [] });
  t.not(tokenIn(await send(pathname + search)), '');
});

t.test('HEAD of the way back from the provider leaves its code whole', async (t) => {
  const { path, cookie } = await begin('alice', 'acme');
  t.match(await send(path, { method: 'HEAD', cookie }), { status: 405, cookies: [] });
  t.not(tokenIn(await send(path, { cookie })), '');
});

t.test('HEAD writes nothing, on every route', async (t) => {
  const ground = await startGround(t);
  const owner = memoryOwner();
  serveOwner(ground.nc, owner);
  const { url } = await runGateway(t, ground);
  const token = await ground.issuer.mint({ scope: 'operator' });
  const id = '0190c9b0-0000-7000-8000-000000000000';
  for (const { name, path, query = {}, method } of routes as readonly Route[]) {
    const filled = path.replaceAll(/:\w+/g, id);
    const needed = Object.keys(query).filter((key) => query[key]?.required === true);
    const asked = needed.map((key) => `${key}=${key === 'port' ? '80' : 'x'}`).join('&');
    const headers = { authorization: `Bearer ${token}` };
    const { status } = await fetch(`${url}${filled}?${asked}`, { method: 'HEAD', redirect: 'manual', headers });
    t.ok(status !== 201 && status !== 202 && status !== 101, `${method} ${name}: ${status}`);
  }
  const writes = owner.asks.filter((ask) => 'op' in ask && ask.type !== 'audit.note').map(({ type }) => type);
  t.same(writes, []);
});
