import t, { type Test } from 'tap';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCredentials } from '../../../../host-agent/link/identity/credentials.ts';
import type { Identity } from '../../../../host-agent/link/identity/identity.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { quietLog } from '../../../actors/support.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { quietDisk } from '../../support/disk.ts';

const hourMs = 3_600_000;
const startMs = Date.parse('2026-01-02T03:00:00Z');

/** A token of which the agent reads the times alone. */
function jwt(untilMs?: number, iss?: string): string {
  const payload = { iss, ...(untilMs === undefined ? {} : { iat: startMs / 1000, exp: untilMs / 1000 }) };
  return `e30.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.x`;
}

function start(t: Test, first: string) {
  const stateDir = temporaryFolder(t);
  let nowMs = startMs;
  const identity: Identity = { host: 'h1' as HostKey, region: 'r', cluster: 'c1', natsUrls: [], jwt: first };
  const credentials = createCredentials(identity, {
    publicKey: 'UKEY',
    stateDir,
    disk: quietDisk(),
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    log: quietLog,
  });
  const stored = async (): Promise<Identity> => {
    await credentials.flush();
    return JSON.parse(readFileSync(join(stateDir, 'identity.json'), 'utf8')) as Identity;
  };
  return { credentials, stored, pass: (ms: number) => void (nowMs += ms) };
}

t.test('renewal is due in the last third of the lifetime', async (t) => {
  const { credentials, stored, pass } = start(t, jwt(startMs + 30 * hourMs));
  t.equal(credentials.expiryMs(), startMs + 30 * hourMs);
  t.equal(credentials.checkEveryMs, hourMs);
  pass(20 * hourMs);
  t.equal(credentials.renewKey(), undefined);
  pass(1000);
  t.equal(credentials.renewKey(), 'UKEY');
  const second = jwt(startMs + 90 * hourMs);
  credentials.renewed(second);
  t.equal(credentials.renewKey(), undefined);
  t.equal(credentials.jwt(), second, 'for the next connection');
  t.equal((await stored()).jwt, second, 'and for the next start');
});

t.test('credentials without an end are never renewed', (t) => {
  const { credentials } = start(t, jwt());
  t.same([credentials.expiryMs(), credentials.renewKey(), credentials.checkEveryMs], [null, undefined, hourMs]);
  t.end();
});

t.test('credentials of another signing key are renewed once it is told', (t) => {
  const { credentials } = start(t, jwt(startMs + 30 * hourMs, 'OLD'));
  t.notOk(credentials.signer('OLD'));
  t.equal(credentials.renewKey(), undefined);
  t.ok(credentials.signer('NEW'));
  t.notOk(credentials.signer('NEW'), 'news only once: actors that still sign by the old one are not asked on and on');
  t.equal(credentials.renewKey(), 'UKEY');
  t.notOk(credentials.renewed(jwt(startMs + 40 * hourMs, 'OLD')), 'by actors that lack the new one');
  t.equal(credentials.renewKey(), 'UKEY');
  t.ok(credentials.renewed(jwt(startMs + 40 * hourMs, 'NEW')), 'the connection is of the old one');
  t.equal(credentials.renewKey(), undefined);
  t.end();
});
