import t from 'tap';
import { AccessLog, tenantOfCaller, type Caller } from '../../../gateway/pipeline/access-log.ts';
import type { Fields, Log } from '../../../lib/log.ts';
import { peerId } from '../vpn/support.ts';
import { anyCall, exchangeOf } from '../calls.ts';
import type { TenantId } from '../../../schemas/ids.ts';

/** Lines with the fields of the log that they were written to. */
function linesLog(lines: Fields[], own: Fields = {}): Log {
  const write = (event: string, fields: Fields = {}): void => void lines.push({ event, ...own, ...fields });
  return {
    debug: write,
    info: write,
    warn: write,
    error: write,
    child: (fields) => linesLog(lines, { ...own, ...fields }),
  };
}

t.test('a line names the caller and its token, never the token itself', (t) => {
  const lines: Fields[] = [];
  const log = new AccessLog(linesLog(lines));
  const { identity } = anyCall;
  if (identity === undefined) throw new Error('no identity');
  const tenant = 'acme' as TenantId;
  const tokenHash = 'abcdefghijklmnopqrstuvwxyz';
  const callers: (Caller | undefined)[] = [
    undefined,
    { kind: 'admitted', identity, crossSite: false, isOfOurs: true },
    { kind: 'granted', grant: { tenant, peer: peerId, scope: 'download', tokenHash } },
  ];
  for (const caller of callers) {
    const finished = {
      requestId: 'r',
      route: 'x',
      caller,
      status: 200,
      ms: 1.2345,
      address: '192.0.2.1',
      streamed: false,
    };
    log.write(exchangeOf({ method: 'PUT' }), finished);
    if (caller !== undefined) t.equal(tenantOfCaller(caller), tenant);
  }
  const line = {
    event: 'request',
    requestId: 'r',
    method: 'PUT',
    route: 'x',
    status: 200,
    ms: 1.23,
    address: '192.0.2.1',
  };
  t.match(lines, [
    line,
    { ...line, tenant, subject: 'alice', token: 'token' },
    { ...line, tenant, peer: peerId, token: 'abcdefghijkl' },
  ]);
  t.notOk(JSON.stringify(lines).includes(tokenHash));
  t.end();
});
