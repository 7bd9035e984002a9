/** The identity of this host in its state folder, and agents that use it. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  decodeIdentity,
  identityPath,
  isTooOld,
  keyFrom,
  lifetimeOf,
  seedIn,
  seedPath,
  userOf,
  type Identity,
} from '../link/identity/identity.ts';
import { readIfPresent } from '../disk/files.ts';
import { isHostLocked, isStateDirLocked } from '../lock.ts';
import { reasonOf } from '../commands/reason.ts';
import { fail, ok, warn, type Finding } from './finding.ts';

export interface CredentialFacts {
  /** `undefined` if this host has not joined, or `fault` says why the identity cannot be read. */
  readonly identity: Identity | undefined;
  readonly seed: Uint8Array | undefined;
  readonly fault: string | undefined;
  /** `true` if another user of this machine may read the key. */
  readonly isKeyOpen: boolean;
  readonly isFolderLocked: boolean;
  readonly isHostLocked: boolean;
}

/** Reads the files, and leaves those in place that cannot be read. */
export async function seeCredentials(stateDir: string): Promise<CredentialFacts> {
  let fault: string | undefined;
  const read = async <T>(path: string, decode: (bytes: Buffer) => T): Promise<T | undefined> => {
    try {
      const bytes = await readIfPresent(path);
      return bytes === undefined ? undefined : decode(bytes);
    } catch (error) {
      fault ??= `${path}: ${reasonOf(error)}`;
      return undefined;
    }
  };
  const identity = await read(identityPath(stateDir), decodeIdentity);
  const seed = await read(seedPath(stateDir), (bytes) => {
    const given = seedIn(bytes);
    keyFrom(given);
    return given;
  });
  const mode = await stat(seedPath(stateDir)).then(
    (each) => each.mode,
    () => 0,
  );
  return {
    identity,
    seed,
    fault,
    isKeyOpen: (mode & 0o077) !== 0,
    isFolderLocked: await stat(stateDir).then(
      () => isStateDirLocked(stateDir),
      () => false,
    ),
    isHostLocked: identity !== undefined && (await isHostLocked(identity)),
  };
}

const day = 24 * 3600 * 1000;
const rejoin =
  'make a join token (POST /api/v2/operator/hosts/<host>/join-token), and join again: host-agent join --token-file FILE';

/** Pure. */
export function judgeCredentials(facts: CredentialFacts, stateDir: string, nowMs: number): Finding[] {
  const { identity, seed, fault } = facts;
  const check = 'credentials';
  if (fault !== undefined) {
    return [
      fail(
        check,
        `cannot be read: ${fault}`,
        'run as the agent’s user; if the file is damaged, restore it or join again',
      ),
    ];
  }
  if (identity === undefined) {
    return [
      fail(
        check,
        `this host has not joined: there is no identity.json in ${stateDir}`,
        'join it: host-agent join --token-file FILE',
      ),
      agents(facts, stateDir),
    ];
  }
  return [...ofKey(identity, seed), lifetime(identity, nowMs), ...openKey(facts, stateDir), agents(facts, stateDir)];
}

function ofKey(identity: Identity, seed: Uint8Array | undefined): Finding[] {
  const { host, region, cluster } = identity;
  const check = 'credentials';
  if (seed === undefined) {
    return [fail(check, `of host ${host}, but its key (agent.nk) is gone`, `restore agent.nk; or ${rejoin}`)];
  }
  if (isTooOld(identity)) {
    return [fail(check, `of host ${host}, from release 0.1.0 or an older one: no actors process accepts them`, rejoin)];
  }
  const user = userOf(identity.jwt);
  if (user !== undefined && user !== keyFrom(seed).getPublicKey()) {
    return [fail(check, `of host ${host}, but for another key than agent.nk`, `restore agent.nk; or ${rejoin}`)];
  }
  return [ok(check, `of host ${host} in region ${region}, cluster ${cluster}`)];
}

function lifetime(identity: Identity, nowMs: number): Finding {
  const check = 'expiry';
  const life = lifetimeOf(identity.jwt);
  if (life === undefined) return ok(check, 'the credentials do not expire');
  const leftMs = life.untilMs - nowMs;
  const until = new Date(life.untilMs).toISOString();
  if (leftMs <= 0) {
    const remedy = `let the agent reach LONGSHORE_URL, where it renews them: event credentials_renew_failed says what is in the way; or ${rejoin}`;
    return fail(check, `the credentials expired at ${until}`, remedy);
  }
  // The agent renews them when a third is left.
  if (leftMs < (life.untilMs - life.sinceMs) / 6) {
    const remedy = 'let the agent reach the control plane, which renews them';
    return warn(check, `the credentials expire at ${until} and have not been renewed`, remedy);
  }
  return ok(check, `in ${Math.floor(leftMs / day)} days; the agent renews them`);
}

const openKey = ({ isKeyOpen }: CredentialFacts, stateDir: string): Finding[] =>
  isKeyOpen
    ? [warn('key file', 'other users of this machine may read agent.nk', `chmod 600 ${join(stateDir, 'agent.nk')}`)]
    : [];

function agents(
  { identity, isFolderLocked: onFolder, isHostLocked: ofHost }: CredentialFacts,
  stateDir: string,
): Finding {
  if (onFolder) return ok('agent', `runs on ${stateDir}`);
  if (ofHost && identity !== undefined) {
    return fail(
      'agent',
      `another agent runs on this machine as host ${identity.host}, on a copy of ${stateDir}`,
      'stop one of them; each host needs a STATE_DIR and an identity of its own',
    );
  }
  return warn('agent', 'no agent runs on this state folder', 'start it: systemctl start longshore-host-agent');
}
