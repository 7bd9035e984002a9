/**
 * Forms of HTTP/1.1 that clients rarely send, right ones and wrong ones, and what comes on each
 * engine. The table of docs/deploy.md, "Rare forms", says the same.
 */
import t from 'tap';
import type { EngineName } from '../../../gateway/http/engine/engine.ts';
import { get, openRaw } from '../../gateway/sockets.ts';
import { engines, memoryOwner, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { skipWithoutTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { startProxy } from './haproxy.ts';

const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const token = await ground.issuer.mint();

const ok = '200, kept';
const okLast = '200, ended';
/** The answer of the API: JSON, with an id of the request. */
const bad = '400, ended';
/** Answers of the engine itself, before the gateway sees a request. */
const badOfEngine = '400 of the engine, ended';
const noSuchVersion = '505 of the engine, ended';
const silence = 'no answer, ended';
/** The gateway gives up after ten seconds, and the engine a little later or before. */
const waits = /^(?:no answer|400), ended$/;

const withHeaders = (...lines: string[]): string => ['GET /healthz HTTP/1.1', ...lines, '', ''].join('\r\n');
const firstLine = (line: string, host = 'a'): string => `${line}\r\nHost: ${host}\r\n\r\n`;
const length = (value: string): string =>
  `POST /api/v2/compute HTTP/1.1\r\nHost: a\r\nContent-Length: ${value}\r\n\r\nabc`;
const chunks = (text: string): string =>
  [
    'POST /api/v2/compute HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
    '',
    text,
  ].join('\r\n');

/** Twelve bytes, which the size before it says. */
const body = '\r\n{"name":"a"}\r\n';

type Row = readonly [what: string, request: string, on: Readonly<Record<EngineName, string | RegExp>> | string];

const rows: readonly Row[] = [
  ['nothing unusual', withHeaders('Host: a'), ok],
  ['a host with a port', withHeaders('Host: [::1]:80'), ok],
  ['an empty host', withHeaders('Host:'), ok],
  ['bytes above ASCII in a value', withHeaders('Host: a', 'X: \u00e4'), ok],
  ['close', withHeaders('Host: a', 'Connection: close'), okLast],
  ['close in other letters', withHeaders('Host: a', 'Connection: CLOSE'), okLast],
  ['close in a list', withHeaders('Host: a', 'Connection: keep-alive, close'), okLast],
  ['close in a second header', withHeaders('Host: a', 'Connection: x', 'Connection: close'), okLast],

  ['two hosts', withHeaders('Host: a', 'Host: b'), { uws: badOfEngine, node: bad }],
  ['two hosts that are the same', withHeaders('Host: a', 'Host: a'), { uws: badOfEngine, node: bad }],
  ['a host with a blank', withHeaders('Host: a b'), bad],
  ['a host with a path', withHeaders('Host: a/b'), bad],
  ['a host with a user', withHeaders('Host: u@a'), bad],
  ['two authorizations', withHeaders('Host: a', 'Authorization: Bearer a', 'Authorization: Bearer a'), bad],
  ['two lengths', length('3\r\nContent-Length: 3'), { uws: bad, node: badOfEngine }],
  ['a list of lengths', length('3, 3'), badOfEngine],
  ['a negative length', length('-3'), badOfEngine],
  ['a signed length', length('+3'), badOfEngine],
  ['a length in other digits', length('0x3'), badOfEngine],
  ['a length beyond all bounds', length('99999999999999999999'), badOfEngine],
  ['an empty length', length(''), { uws: bad, node: badOfEngine }],
  ['length and chunks', length('3\r\nTransfer-Encoding: chunked'), badOfEngine],
  ['an unknown coding', withHeaders('Host: a', 'Transfer-Encoding: gzip'), bad],

  ['no host', withHeaders('X: a'), badOfEngine],
  ['a blank before the colon', withHeaders('Host : a'), badOfEngine],
  ['a folded header', withHeaders('Host: a', 'X: a', ' b'), badOfEngine],
  ['a header without a colon', withHeaders('Host: a', 'X'), badOfEngine],
  ['a bracket in a name', withHeaders('Host: a', 'X(A: b'), badOfEngine],
  ['NUL in a value', withHeaders('Host: a', 'X: a\0b'), badOfEngine],
  ['a control character in a value', withHeaders('Host: a', 'X: a\x01b'), badOfEngine],
  ['a size of a chunk that is none', chunks('zz\r\n{}\r\n0\r\n\r\n'), badOfEngine],

  ['a whole URL', firstLine('GET http://b/healthz HTTP/1.1'), { uws: noSuchVersion, node: ok }],
  ['a whole URL of nobody', firstLine('GET http://u@b/healthz HTTP/1.1'), { uws: noSuchVersion, node: bad }],
  ['OPTIONS of the server', firstLine('OPTIONS * HTTP/1.1'), { uws: noSuchVersion, node: '404, kept' }],
  ['HTTP/1.0', 'GET /healthz HTTP/1.0\r\n\r\n', { uws: noSuchVersion, node: okLast }],
  ['HTTP/1.2', firstLine('GET /healthz HTTP/1.2'), { uws: noSuchVersion, node: badOfEngine }],
  ['a blank in the URL', firstLine('GET /healthz x HTTP/1.1'), { uws: noSuchVersion, node: badOfEngine }],
  ['lines that end in LF', 'GET /healthz HTTP/1.1\nHost: a\n\n', { uws: noSuchVersion, node: badOfEngine }],
  ['a bare CR in a value', withHeaders('Host: a', 'X: a\rb'), { uws: silence, node: badOfEngine }],
  ['an empty line before the request', `\r\n${withHeaders('Host: a')}`, { uws: silence, node: ok }],
  ['an empty name of a header', withHeaders('Host: a', ': b'), { uws: ok, node: badOfEngine }],

  ['chunks', chunks(`c${body}0\r\n\r\n`), { uws: '201, ended', node: '201, kept' }],
  ['an extension of a chunk', chunks(`c;a=b${body}0\r\n\r\n`), { uws: waits, node: '201, kept' }],
  ['a trailer', chunks(`c${body}0\r\nX: y\r\n\r\n`), { uws: noSuchVersion, node: '201, kept' }],
];

/** The answer, and whether the connection takes a second request. */
async function cameOf(url: string, what: string, request: string): Promise<string> {
  const connection = openRaw(url, request);
  await until(what, () => connection.status() !== undefined || connection.closed());
  const status = connection.status();
  const by = /\r\nx-request-id: /i.test(connection.text()) ? '' : ' of the engine';
  connection.socket.write(get('/healthz'));
  const replies = (): number => connection.text().split('HTTP/1.1 ').length - 1;
  await until(`${what}: more, or the end`, () => replies() > 1 || connection.closed());
  connection.socket.destroy();
  return `${status === undefined ? 'no answer' : `${status}${by}`}, ${connection.closed() ? 'ended' : 'kept'}`;
}

for (const engine of engines) {
  t.test(`on ${engine}`, async (t) => {
    const { url } = await runGateway(t, ground, { engine });
    // At once: without an answer, ten seconds pass until the engine gives up.
    const came = await Promise.all(rows.map(([what, request]) => cameOf(url, what, request)));
    for (const [at, [what, , on]] of rows.entries()) t.match(came[at], typeof on === 'string' ? on : on[engine], what);
  });
}

/** Answers of uWebSockets.js behind a proxy that parses the request first. */
const behind: Readonly<Record<string, string>> = {
  'an extension of a chunk': '201, kept',
  'an empty line before the request': ok,
  'a bare CR in a value': badOfEngine,
  'an empty name of a header': badOfEngine,
  'OPTIONS of the server': noSuchVersion,
  'HTTP/1.0': noSuchVersion,
  'a trailer': noSuchVersion,
};

t.test('behind HAProxy', { skip: await skipWithoutTools('haproxy') }, async (t) => {
  const gateway = await runGateway(t, ground);
  const { url } = await startProxy(t, new URL(gateway.url).host);
  await until('ready', async () => (await fetch(`${url}/readyz`)).status === 200);
  const named = rows.filter(([what]) => behind[what] !== undefined);
  const came = await Promise.all(named.map(async ([what, request]) => [what, await cameOf(url, what, request)]));
  t.same(Object.fromEntries(came), behind);
});

t.test('a request that is refused for its headers is answered as the API answers', async (t) => {
  for (const engine of engines) {
    const { url } = await runGateway(t, ground, { engine });
    const connection = openRaw(url, withHeaders('Host: a/b', 'X-Request-Id: mine'));
    await until('the end', () => connection.closed());
    t.match(
      connection.text(),
      /^HTTP\/1\.1 400 [^]*\r\n\r\n\{"error":"bad_request","message":"the headers are wrong: /,
    );
    t.match(connection.text(), /\r\nx-request-id: mine\r\n/i);
    t.match(connection.text(), /\r\nconnection: close\r\n/i);
  }
});
