/** Lists the generated tables and the pages that contain them. */
import { settings as actorsSettings } from '../../actors/settings.ts';
import { settings as gatewaySettings } from '../../gateway/configuration/settings.ts';
import { dnsSettings, netSettings } from '../../host-agent/tenant-network/settings.ts';
import { settings as agentSettings } from '../../host-agent/settings.ts';
import type { Settings } from '../../lib/config.ts';
import { routes } from '../../schemas/routes.ts';
import { settings as backupSettings } from '../../ops/backup/target.ts';
import { tools } from '../fetch/tool-table.ts';
import { commandsTable } from './commands.ts';
import { programMetrics } from './program-metrics.ts';
import {
  commonErrorsTable,
  conflictsTable,
  errorsTable,
  metricsTable,
  reasonsTable,
  routesTable,
  settingsTable,
  statusesTable,
  toolingTable,
} from './tables.ts';

export const programSettings: Readonly<Record<'gateway' | 'actors' | 'host-agent' | 'net', Settings>> = {
  gateway: gatewaySettings,
  actors: actorsSettings,
  'host-agent': agentSettings,
  net: { ...netSettings, ...dnsSettings },
};

export const tables: ReadonlyMap<string, () => string> = new Map([
  ['errors', errorsTable],
  ['conflicts', conflictsTable],
  ['statuses', statusesTable],
  ['reasons', reasonsTable],
  ['metrics-common', () => metricsTable(programMetrics.common)],
  ['metrics-gateway', () => metricsTable(programMetrics.gateway)],
  ['metrics-actors', () => metricsTable(programMetrics.actors)],
  ['metrics-host-agent', () => metricsTable(programMetrics['host-agent'])],
  ['metrics-forage', () => metricsTable(programMetrics.forage)],
  ['settings-gateway', () => settingsTable('gateway', gatewaySettings)],
  ['settings-actors', () => settingsTable('actors', actorsSettings)],
  ['settings-host-agent', () => settingsTable('host-agent', agentSettings)],
  ['settings-net', () => settingsTable('net', programSettings.net)],
  ['settings-backup', () => settingsTable('backup', backupSettings)],
  ['settings-tooling', () => toolingTable(tools)],
  ['routes-tenant', () => routesTable(routes, 'tenant')],
  ['routes-operator', () => routesTable(routes, 'operator')],
  ['routes-files', () => routesTable(routes, 'download', 'pac')],
  ['routes-public', () => routesTable(routes, 'public')],
  ['routes-common-errors', commonErrorsTable],
  ['commands', commandsTable],
]);

/**
 * Paths of the pages with tables, from the root of the repository. Each table appears on one of
 * them.
 */
export const pages: readonly string[] = [
  'docs/errors.md',
  'docs/metrics.md',
  'docs/configuration.md',
  'docs/api.md',
  'docs/cli.md',
];
