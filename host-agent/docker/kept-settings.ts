/**
 * The settings of a container that the agent keeps as it wants them: members of `HostConfig` that
 * `POST /containers/{id}/update` changes. Pure.
 */
import Type, { type Static } from 'typebox';

/**
 * The engine shows a setting as its `default` here, or as null, if it does not enforce the setting
 * or has a default of its own.
 */
export const keptSettings = {
  /** Bytes. */
  Memory: Type.Integer({ default: 0 }),
  /** Bytes of memory and swap together; -1 means no limit. */
  MemorySwap: Type.Integer({ default: 0 }),
  /** Billionths of a CPU. */
  NanoCpus: Type.Integer({ default: 0 }),
  /** 0 means no limit. */
  PidsLimit: Type.Union([Type.Integer(), Type.Null()]),
  CpuShares: Type.Integer({ default: 0 }),
  /** Such as `0-3`. */
  CpusetCpus: Type.String({ default: '' }),
  RestartPolicy: Type.Union([Type.Object({ Name: Type.String() }), Type.Null()], { default: { Name: '' } }),
};
export type KeptSettings = {
  readonly [Name in keyof typeof keptSettings]: NonNullable<Static<(typeof keptSettings)[Name]>>;
};
/** The limits of a container; the others are the same for all. */
export type EngineLimits = Pick<KeptSettings, 'Memory' | 'MemorySwap' | 'NanoCpus'>;
