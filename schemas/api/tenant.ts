/** A tenant: the regions it may use, its caps, and what it uses of them. */
import Type, { type Static } from 'typebox';
import { quotaDimensions, type QuotaDimension } from '../errors.ts';
import { Region, TenantId, regionPattern } from '../ids.ts';
import { defaultCaps, limits } from '../limits.ts';
import { nullable } from './nullable.ts';
import { RegistryRules } from './registry.ts';

const Cap = Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]);

/** A cap for each dimension; `null` is no cap. An absent dimension keeps its default. */
export const RegionCaps = Type.Object(
  Object.fromEntries(quotaDimensions.map((dimension) => [dimension, Type.Optional(Cap)])) as Record<
    QuotaDimension,
    Type.TOptional<typeof Cap>
  >,
  { additionalProperties: false },
);

/** A cap of the tenant as a whole, not of a region. */
const deletesPerHour = {
  deletes_per_hour: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
      description:
        'Containers deleted in an hour. Above this the API answers creates with 429; it never refuses deletes.',
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

/** A tenant in an operator's list. */
export const TenantSummary = Type.Object(
  {
    id: TenantId,
    regions: nullable(
      Type.Array(Region, {
        description: 'Null, as are the caps, if the record of the tenant is damaged (docs/runbook.md).',
      }),
    ),
    caps: nullable(Type.Record(Type.String(), Cap)),
    usage: Type.Record(Type.String(), Type.Integer(), { description: 'Usage in all regions.' }),
  },
  { additionalProperties: false },
);
export type TenantSummary = Static<typeof TenantSummary>;

export type QuotaAmounts = Readonly<Record<QuotaDimension, number>>;
export type QuotaCaps = Readonly<Record<QuotaDimension, number | null>>;
export type TenantCaps = QuotaCaps & { readonly deletes_per_hour: number | null };

/** The caps as they were set. Absent ones have their default. */
export type StoredCaps = Readonly<Partial<TenantCaps>>;

const deletesPerHourOf = (containers: number | null): number => {
  const { deletesPerHourPerCap, deletesPerHourMin, deletesPerHourMax } = limits;
  if (containers === null) return deletesPerHourMax;
  return Math.min(Math.max(containers * deletesPerHourPerCap, deletesPerHourMin), deletesPerHourMax);
};

/** Caches by record: records are replaced and never changed, and every create looks at the caps. */
const knownCaps = new WeakMap<StoredCaps, TenantCaps>();

/**
 * All caps. Unless they were set, those of ports, disk and deletions follow the cap of containers.
 * So a tenant whose cap of containers was raised, even before these caps existed, does not hit
 * them.
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

/** Refused tokens of a tenant: one (`jti`), those of a subject, or all issued before a time. */
export const RevocationBody = Type.Object(
  {
    jti: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    sub: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    exp: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 253_402_300_799,
        description: 'With `jti`: the `exp` of the token, if known. The revocation ends at that time.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type RevocationBody = Static<typeof RevocationBody>;

/** A revocation: tokens issued until then, of which the last expires at `expires_at`. */
export const RevocationView = Type.Object(
  { issued_until: Type.String({ format: 'date-time' }), expires_at: Type.String({ format: 'date-time' }) },
  { additionalProperties: false },
);

export interface Revocation {
  readonly tenant: TenantId;
  readonly match: { readonly by: 'jti' | 'sub'; readonly value: string } | { readonly by: 'tenant' };
  /**
   * Tokens issued (`iat`) at or before this second are refused. A token named by its `jti` is
   * refused whatever its `iat`.
   */
  readonly issuedUntilS: number;
  /** Time at which every token that it could match has expired. */
  readonly untilMs: number;
}

/** Claims of a token; `issuedAtS` is 0 if it does not say when it was issued. */
export interface Issued {
  readonly tokenId: string | undefined;
  readonly subject: string;
  readonly issuedAtS: number;
}

/** True if a revocation refuses the token of its tenant. */
export function matchesToken({ match, issuedUntilS }: Revocation, { tokenId, subject, issuedAtS }: Issued): boolean {
  const isInTime = issuedAtS <= issuedUntilS;
  switch (match.by) {
    case 'tenant':
      return isInTime;
    case 'jti':
      return match.value === tokenId;
    case 'sub':
      return isInTime && match.value === subject;
  }
}

/**
 * True if `next` refuses every token of its tenant that this one refuses, for as long. An issuer
 * whose clock is ahead may have given a token that was revoked by its `jti` an `iat` in the future.
 * So a revocation of all tokens replaces that one only if it is later by as much as a clock may be
 * ahead.
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
  /** Only what was set: defaults of a later release apply to the rest. */
  readonly caps: StoredCaps;
  readonly regionCaps: Readonly<Record<string, Readonly<Partial<Record<QuotaDimension, number | null>>>>>;
  /**
   * Registries from which its images may come; `null` or absent allows any registry that the host
   * allows. Absent in older records.
   */
  readonly registries?: readonly string[] | null;
  /** Overrides `registries` in these regions. */
  readonly regionRegistries?: Readonly<Record<string, readonly string[] | null>>;
  readonly revocations: readonly Revocation[];
  readonly updatedAtMs: number;
}

/** A tenant without a stored record. */
export const defaultTenant = (tenant: TenantId): TenantRecord => ({
  kind: 'tenant',
  tenant,
  regions: ['default' as Region],
  caps: {},
  regionCaps: {},
  revocations: [],
  updatedAtMs: 0,
});
