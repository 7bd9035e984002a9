/**
 * The rights of a container on its host's kernel: capabilities, privileges, and limits other than
 * CPU and memory. Pure.
 */
import { limits } from '../../schemas/limits.ts';

/**
 * Docker's default capabilities, without NET_RAW: on the bridge that tenants share, raw sockets
 * would let one answer ARP for another. An operator may grant any of these; the others would open a
 * way to the host.
 */
export const grantableCapabilities = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
] as const;
export type Capability = (typeof grantableCapabilities)[number];

/**
 * The capabilities that the entrypoints of ordinary images need: to own a data folder (CHOWN,
 * FOWNER, DAC_OVERRIDE), to drop to an unprivileged user (SETUID, SETGID), to signal that user's
 * processes (KILL), to listen below port 1024.
 */
export const defaultCapabilities: readonly Capability[] = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'KILL',
  'NET_BIND_SERVICE',
  'SETGID',
  'SETUID',
];

/**
 * `CAP_CHOWN, kill` → CHOWN, KILL; `none` → none at all; `undefined` if one is unknown or must not
 * be granted.
 */
export function parseCapabilities(text: string): readonly Capability[] | undefined {
  if (text.trim().toLowerCase() === 'none') return [];
  const names = text.split(',').map((name) => name.trim().toUpperCase().replace(/^CAP_/, ''));
  const known = names.flatMap((name) => grantableCapabilities.find((capability) => capability === name) ?? []);
  return known.length === names.length ? [...new Set(known)] : undefined;
}

/** A core dump would write the container's memory to the host's disk. */
export const ulimits = [{ Name: 'core', Soft: 0, Hard: 0 }] as const;

/** Members of `HostConfig`. None is named for seccomp, so the engine's default profile stays. */
export const confinement = (capabilities: readonly Capability[]) => ({
  CapDrop: ['ALL'],
  CapAdd: [...capabilities],
  SecurityOpt: ['no-new-privileges'],
  PidsLimit: limits.containerPids,
  IpcMode: 'private',
  // In memory, and part of the container's limit.
  ShmSize: limits.containerShmBytes,
  Ulimits: ulimits,
});
