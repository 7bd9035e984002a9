import t, { type Test } from 'tap';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCredentials } from '../../../../host-agent/control-plane/identity/credentials.ts';
import type { StoredIdentity } from '../../../../host-agent/control-plane/identity/identity.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { quietLog } from '../../../actors/support.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { quietDisk } from '../../support/disk.ts';

const hourMs = 3_600_000;
const startMs = Date.parse('2026-01-02T03:00:00Z');

/** A token of which the agent reads the claims alone. */
function jwt(
  name: string,
  claims: {
    readonly bound?: boolean;
    /** With bound ones: from before 0.2.0, without sessions. */
    readonly isOlder?: boolean;
    readonly sinceMs?: number;
    readonly untilMs?: number;
  },
) {
  const { bound = false, isOlder = false, sinceMs, untilMs } = claims;
  const hears = ['desired.h1.*', ...(bound && !isOlder ? ['session.h1.UKEY.*'] : [])];
  const payload = {
    name,
    sub: 'UKEY',
    ...(sinceMs === undefined ? {} : { iat: sinceMs / 1000 }),
    ...(untilMs === undefined ? {} : { exp: untilMs / 1000 }),
    nats: { pub: { allow: [bound ? 'agent.h1.UKEY.>' : 'host.h1.>'] }, sub: { allow: hears } },
  };
  return `e30.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.x`;
}

function start(t: Test, given: Partial<StoredIdentity>) {
  const stateDir = temporaryFolder(t);
  let nowMs = startMs;
  const identity = { host: 'h1' as HostKey, region: 'r', cluster: 'c1', natsUrls: [], jwt: '', ...given };
  const credentials = createCredentials(identity, {
    publicKey: 'UKEY',
    stateDir,
    boundRetry: { minMs: 1000, maxMs: 60_000 },
    disk: quietDisk(),
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    log: quietLog,
  });
  const stored = async (): Promise<StoredIdentity> => {
    await credentials.flush();
    return JSON.parse(readFileSync(join(stateDir, 'identity.json'), 'utf8')) as StoredIdentity;
  };
  return { credentials, stored, pass: (ms: number) => void (nowMs += ms) };
}

t.test('renewal is due in the last third of the lifetime', (t) => {
  const { credentials, pass } = start(t, {
    jwt: jwt('first', { bound: true, sinceMs: startMs, untilMs: startMs + 30 * hourMs }),
  });
  t.equal(credentials.expiryMs(), startMs + 30 * hourMs);
  t.equal(credentials.checkEveryMs, hourMs);
  pass(20 * hourMs);
  t.equal(credentials.renewKey(), undefined);
  pass(1000);
  t.equal(credentials.renewKey(), 'UKEY');
  credentials.renewed(jwt('second', { bound: true, sinceMs: startMs, untilMs: startMs + 90 * hourMs }));
  t.equal(credentials.renewKey(), undefined);
  t.end();
});

t.test('credentials without an end are never renewed', (t) => {
  const { credentials } = start(t, { jwt: jwt('first', { bound: true }) });
  t.same([credentials.expiryMs(), credentials.renewKey(), credentials.checkEveryMs], [null, undefined, hourMs]);
  t.end();
});

t.test(
  'bound credentials that do not permit sessions are renewed at once, and seldom where there are no others',
  (t) => {
    const before = { bound: true, isOlder: true } as const;
    const { credentials, pass } = start(t, { jwt: jwt('first', before) });
    t.notOk(credentials.permitSessions());
    t.equal(credentials.renewKey(), 'UKEY');
    credentials.renewed(jwt('of the last release', before));
    t.equal(credentials.renewKey(), undefined, 'this control plane has no others');
    pass(hourMs);
    t.equal(credentials.renewKey(), 'UKEY', 'it may have been upgraded');
    credentials.renewed(jwt('of this release', { bound: true }));
    t.ok(credentials.permitSessions());
    t.equal(credentials.renewKey(), undefined);
    t.end();
  },
);

t.test('bound credentials reach the disk after the control plane has answered them', async (t) => {
  const [old, bound] = [jwt('old', {}), jwt('bound', { bound: true })];
  const { credentials, stored } = start(t, { jwt: old });
  t.equal(credentials.askBoundInMs(), 0, 'due at once');
  t.equal(credentials.sender().user, undefined);
  t.ok(credentials.offered(bound));
  t.equal(credentials.jwt(), bound, 'on trial');
  t.equal(credentials.sender().user, 'UKEY');
  t.ok(credentials.isOnTrial());
  credentials.keep();
  t.match(await stored(), { jwt: old, bound_jwt: undefined });
  credentials.proved();
  t.notOk(credentials.isOnTrial());
  t.match(await stored(), { jwt: old, bound_jwt: bound }, 'the old ones stay until they expire');
  t.equal(credentials.askBoundInMs(), undefined);
});

t.test('an offer without bound credentials is repeated after a back-off', (t) => {
  const { credentials, pass } = start(t, { jwt: jwt('old', {}) });
  t.notOk(credentials.offered(undefined));
  const firstMs = credentials.askBoundInMs() ?? 0;
  t.ok(firstMs > 0);
  pass(firstMs);
  t.equal(credentials.askBoundInMs(), 0);
  t.notOk(credentials.offered(jwt('unbound too', {})));
  t.ok((credentials.askBoundInMs() ?? 0) > firstMs);
  t.end();
});

t.test('bound credentials on trial that get no answer are given up for the old ones', (t) => {
  const old = jwt('old', {});
  const { credentials } = start(t, { jwt: old });
  credentials.offered(jwt('bound', { bound: true }));
  t.ok(credentials.hasFallback());
  credentials.fallBack();
  t.equal(credentials.jwt(), old);
  t.notOk(credentials.isOnTrial());
  t.ok((credentials.askBoundInMs() ?? 0) > 0, 'a failed trial waits before the next');
  t.notOk(credentials.returnToBound(), 'there are none that worked');
  t.end();
});

t.test('bound credentials that worked before are tried again when the old ones get no answer either', (t) => {
  const [old, bound] = [jwt('old', {}), jwt('bound', { bound: true })];
  const { credentials } = start(t, { jwt: old, bound_jwt: bound });
  t.equal(credentials.jwt(), bound);
  credentials.fallBack();
  t.equal(credentials.jwt(), old);
  t.equal(credentials.askBoundInMs(), 0, 'due at once');
  t.ok(credentials.returnToBound());
  t.equal(credentials.jwt(), bound);
  t.end();
});

t.test('expired old credentials are no fallback, and the next renewal drops them', async (t) => {
  const old = jwt('old', { sinceMs: startMs - hourMs, untilMs: startMs + hourMs });
  const bound = jwt('bound', { bound: true });
  const { credentials, stored, pass } = start(t, { jwt: old, bound_jwt: bound });
  t.ok(credentials.hasFallback());
  pass(hourMs);
  t.notOk(credentials.hasFallback());
  credentials.fallBack();
  t.equal(credentials.jwt(), bound, 'nothing to fall back to');
  const next = jwt('next', { bound: true });
  credentials.renewed(next);
  const kept = await stored();
  t.equal(kept.jwt, next);
  t.notHas(kept, { bound_jwt: bound });
});
