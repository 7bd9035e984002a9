/** Seals every secret under the current key, page by page, while requests continue. */
import type { Sealed, SecretPlace, StaleSecret } from '../../schemas/records/sealed.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Handlers } from '../call.ts';
import { ok } from '../http/respond.ts';
import { SealError, type Vault } from '../vault/vault.ts';
import type { Asker, VpnActors } from '../vpn/service/actors.ts';
import { keyringOf } from '../vpn/service/keyring.ts';
import { refusing } from '../vpn/service/refusal.ts';
import type { Forage } from '../vpn/vpn.ts';

export interface Resealing {
  readonly key_id: string;
  readonly resealed: number;
  /**
   * Secrets still under another key: not reached in time, or sealed with a key that this gateway
   * does not have. Ask again.
   */
  readonly remaining: number;
}

interface Item {
  readonly place: SecretPlace;
  readonly before: Sealed;
  readonly after: Sealed;
}

export async function resealAll(
  asker: Asker,
  { actors, vault, clock, log }: { actors: VpnActors; vault: Vault; clock: Clock; log: Log },
): Promise<Resealing> {
  const keyId = vault.currentKeyId;
  const reseal = ({ place, sealed }: StaleSecret): Item[] => {
    try {
      return [{ place, before: sealed, after: vault.reseal(place, sealed) }];
    } catch (error) {
      if (!(error instanceof SealError)) throw error;
      // Names neither peer nor tenant: no log line does.
      const field = 'field' in place ? { field: place.field } : {};
      log.error('secret_open_failed', { requestId: asker.origin.rid, of: place.of, ...field, why: error.why });
      return [];
    }
  };
  let resealed = 0;
  let remaining = 0;
  for (const partition of actors.partitions()) {
    for (;;) {
      const { data: stale } = await actors.read(asker, { type: 'secret.stale', partition, keyId });
      const items = stale.flatMap(reseal);
      // Secrets that cannot be opened come first in every page; a page full of them ends the run.
      if (items.length === 0 || clock.monotonicMs() > asker.deadlineMs) {
        remaining += stale.length;
        break;
      }
      const { data } = await actors.write(asker, {
        type: 'secret.replace',
        partition,
        items,
      });
      resealed += data.replaced;
    }
  }
  return { key_id: keyId, resealed, remaining };
}

export const resealRoutes = ({ actors, keyring, clock, log }: Forage) =>
  ({
    'secret.reseal': refusing<'secret.reseal'>(log, async (call) => {
      const { vault } = keyringOf(keyring);
      return ok(await resealAll(call, { actors, vault, clock, log }));
    }),
  }) satisfies Partial<Handlers>;
