/**
 * The commands in the order of the help, in groups. A group is one module. A start loads that of
 * its command and no other: together they take longer to load than a simple command to run.
 */
import type { Command } from 'commander';
import type { Terminal } from './context.ts';

type Add = (program: Command, terminal: Terminal) => void;

export interface Group {
  /** Names of the commands that it adds to the program, in their order. */
  readonly names: readonly string[];
  readonly load: () => Promise<Add>;
}

const group = (names: string, load: Group['load']): Group => ({ names: names.split(' '), load });

/** @param loadClusters loads `backup`, `restore` and `nats-keys` */
export const groupsWith = (loadClusters: Group['load']): readonly Group[] => [
  group('login logout whoami profile', async () => (await import('./tenant/profiles.ts')).addProfiles),
  group('run update', async () => (await import('./tenant/run.ts')).addRun),
  group('versions rollback', async () => (await import('./tenant/versions.ts')).addVersions),
  group('apply', async () => (await import('./apply/command.ts')).addApply),
  group('ps', async () => (await import('./tenant/ps.ts')).addPs),
  group('inspect describe port', async () => (await import('./tenant/show.ts')).addShow),
  group('start stop restart rm wait', async () => (await import('./tenant/containers.ts')).addContainers),
  group('quota usage', async () => (await import('./tenant/usage.ts')).addUsage),
  group('logs events', async () => (await import('./tenant/past.ts')).addPast),
  group('stats', async () => (await import('./tenant/stats.ts')).addStats),
  group('trace', async () => (await import('./history/trace.ts')).addTrace),
  group('audit', async () => (await import('./history/audit.ts')).addAudit),
  group('exec cp forward', async () => (await import('./tenant/sessions/sessions.ts')).addSessions),
  group('secret registry token', async () => (await import('./tenant/secrets.ts')).addAccess),
  group('policy', async () => (await import('./tenant/policy.ts')).addPolicy),
  group('peer', async () => (await import('./tenant/peers/peers.ts')).addPeers),
  group('host', async () => (await import('./operator/hosts.ts')).addHosts),
  group('tenant revoke', async () => (await import('./operator/tenants.ts')).addTenants),
  group('network', async () => (await import('./operator/networks.ts')).addNetworks),
  group('signing-key', async () => (await import('./operator/signing-keys.ts')).addSigningKeys),
  group('backup restore nats-keys', loadClusters),
  group('version', async () => (await import('./tenant/version.ts')).addVersion),
  group('doctor', async () => (await import('./doctor/doctor.ts')).addDoctor),
  group('completion __complete', async () => (await import('./completion/command.ts')).addCompletion),
];

/** Groups of the package of the command line alone. */
export const groups = groupsWith(async () => (await import('./operator/clusters.ts')).addAbsent);
