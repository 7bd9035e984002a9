/** A tenant: the regions it may use, its caps, and what it uses of them. */
import Type, { type Static } from 'typebox';
import { quotaDimensions, type QuotaDimension } from '../errors.ts';
import { Region, TenantId, regionPattern } from '../ids.ts';
import { defaultCaps, limits } from '../limits.ts';
import { nullable } from './nullable.ts';
import { RegistryRules } from './registry.ts';

const Cap = Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]);

/** A cap per dimension; null is no cap, an absent dimension keeps its default. */
const RegionCaps = Type.Object(
  Object.fromEntries(quotaDimensions.map((dimension) => [dimension, Type.Optional(Cap)])) as Record<
    QuotaDimension,
    Type.TOptional<typeof Cap>
  >,
  { additionalProperties: false },
);

/** Of the tenant as a whole, in no region. */
const deletesPerHour = {
  deletes_per_hour: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
      description: 'Containers deleted in an hour: above it creates are refused with 429, deletes never.',
    }),
  ),
};
export const Caps = Type.Object({ ...RegionCaps.properties, ...deletesPerHour }, { additionalProperties: false });
export type Caps = Static<typeof Caps>;

export const TenantSettings = Type.Object(
  {
    regions: Type.Optional(Type.Array(Region, { maxItems: 64, uniqueItems: true })),
    caps: Type.Optional(Caps),
    region_caps: Type.Optional(
      Type.Record(Type.String({ pattern: regionPattern }), RegionCaps, {
        additionalProperties: false,
        maxProperties: 64,
      }),
    ),
    registries: Type.Optional(nullable(RegistryRules)),
    region_registries: Type.Optional(
      Type.Record(Type.String({ pattern: regionPattern }), nullable(RegistryRules), {
        additionalProperties: false,
        maxProperties: 64,
      }),
    ),
  },
  { additionalProperties: false },
);
export type TenantSettings = Static<typeof TenantSettings>;

/** `PUT /operator/tenants/:id` */
export const TenantBody = Type.Object(
  {
    ...TenantSettings.properties,
    repair: Type.Optional(
      Type.Boolean({
        description: 'Replace a damaged record; every token of the tenant issued until now is revoked.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type TenantBody = Static<typeof TenantBody>;

export const TenantView = Type.Object(
  {
    id: TenantId,
    regions: Type.Array(Region),
    caps: Type.Record(Type.String(), Cap),
    region_caps: Type.Record(Type.String(), Type.Record(Type.String(), Cap)),
    registries: nullable(RegistryRules),
    region_registries: Type.Record(Type.String(), nullable(RegistryRules)),
  },
  { additionalProperties: false },
);
export type TenantView = Static<typeof TenantView>;

export type QuotaAmounts = Readonly<Record<QuotaDimension, number>>;
export type QuotaCaps = Readonly<Record<QuotaDimension, number | null>>;
export type TenantCaps = QuotaCaps & { readonly deletes_per_hour: number | null };

/** As they were set: absent ones have their default, in records of an older release too. */
export type StoredCaps = Readonly<Partial<TenantCaps>>;

const deletesPerHourOf = (containers: number | null): number => {
  const { deletesPerHourPerCap, deletesPerHourMin, deletesPerHourMax } = limits;
  if (containers === null) return deletesPerHourMax;
  return Math.min(Math.max(containers * deletesPerHourPerCap, deletesPerHourMin), deletesPerHourMax);
};

/**
 * Records are replaced, not changed, and their caps are looked at for every container that is
 * declared.
 */
const knownCaps = new WeakMap<StoredCaps, TenantCaps>();

/**
 * All caps. Those of ports, disk and deletions follow the cap of containers unless they were set: a
 * tenant whose cap of containers is raised, or was raised before there were these caps, meets none
 * of them.
 */
export function capsOf(stored: StoredCaps): TenantCaps {
  const known = knownCaps.get(stored);
  if (known !== undefined) return known;
  const { containers = defaultCaps.containers } = stored;
  const forAll = (each: number): number | null =>
    containers === null ? null : Math.min(containers * each, Number.MAX_SAFE_INTEGER);
  const caps = {
    ...defaultCaps,
    ports: forAll(limits.ports),
    disk_bytes: forAll(limits.containerDiskBytes),
    deletes_per_hour: deletesPerHourOf(containers),
    ...stored,
  };
  knownCaps.set(stored, caps);
  return caps;
}

/** `GET /quota` */
export const QuotaView = Type.Object(
  {
    region: Type.String(),
    usage: Type.Record(Type.String(), Type.Integer()),
    caps: Type.Record(Type.String(), Cap),
  },
  { additionalProperties: false },
);

/**
 * Which of a tenant's tokens are refused: one (`jti`), a subject's, or all that were issued before
 * a time.
 */
export const RevocationBody = Type.Object(
  {
    jti: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    sub: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    exp: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 253_402_300_799,
        description: 'With `jti`: the `exp` of that token, if it is known; the revocation ends with it.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type RevocationBody = Static<typeof RevocationBody>;

export interface Revocation {
  readonly tenant: TenantId;
  readonly match: { readonly by: 'jti' | 'sub'; readonly value: string } | { readonly by: 'tenant' };
  /**
   * Tokens issued (`iat`) at or before this second are refused; a token that is named by its `jti`,
   * whatever its `iat`.
   */
  readonly issuedUntilS: number;
  /** When every token that it could meet has expired. */
  readonly untilMs: number;
}

/**
 * Whether `next` refuses every token of its tenant that this one refuses, for as long. An issuer
 * whose clock is ahead may have given a token that was revoked by its `jti` an `iat` that was still
 * to come; so a revocation of all tokens stands for that one only when it is later by as much as a
 * clock may be ahead.
 */
export function isCovered({ match, issuedUntilS, untilMs }: Revocation, next: Revocation): boolean {
  if (untilMs > next.untilMs) return false;
  if (match.by !== 'tenant' && match.by === next.match.by && match.value === next.match.value) {
    return match.by === 'jti' || issuedUntilS <= next.issuedUntilS;
  }
  const aheadS = match.by === 'jti' ? limits.issuerAheadMs / 1000 : 0;
  return next.match.by === 'tenant' && issuedUntilS + aheadS <= next.issuedUntilS;
}

export interface TenantRecord {
  readonly kind: 'tenant';
  readonly tenant: TenantId;
  readonly regions: readonly Region[];
  /**
   * What was set, and nothing that follows from it: defaults of a later release apply to all else.
   */
  readonly caps: StoredCaps;
  readonly regionCaps: Readonly<Record<string, Readonly<Partial<Record<QuotaDimension, number | null>>>>>;
  /**
   * Where its images may come from; null or absent: from wherever its host allows. Absent in older
   * records.
   */
  readonly registries?: readonly string[] | null;
  /** In place of `registries`, in these regions. */
  readonly regionRegistries?: Readonly<Record<string, readonly string[] | null>>;
  readonly revocations: readonly Revocation[];
  readonly updatedAtMs: number;
}

/** What a tenant is before anything was stored of it. */
export const defaultTenant = (tenant: TenantId): TenantRecord => ({
  kind: 'tenant',
  tenant,
  regions: ['default' as Region],
  caps: {},
  regionCaps: {},
  revocations: [],
  updatedAtMs: 0,
});
