/** `host`, for operators. */
import type { Command } from 'commander';
import { dataOf, doneOf } from '../client/api.ts';
import { ApiError } from '../client/errors.ts';
import { allOf } from '../client/pages.ts';
import { action, type Terminal } from '../context.ts';
import { paintOf } from '../terminal/colours.ts';
import { Refused } from '../terminal/errors.ts';
import { bytesText, tableOf } from '../terminal/table.ts';

export function addHosts(program: Command, terminal: Terminal): void {
  const host = program.command('host').description('hosts, for operators');
  const path = (key: string) => ({ path: { key } });
  host
    .command('ls')
    .description('list them')
    .action(
      action(terminal, async (context) => {
        const { api, show } = context;
        const all = await allOf((query) => api.GET('/api/v2/operator/hosts', { params: { query } }));
        const rows = all.map(({ key, region, status, cordoned, draining, used, faults, agent_version }) => [
          key,
          region,
          `${status}${draining ? ', draining' : cordoned ? ', cordoned' : ''}`,
          used === null ? '-' : String(used.containers),
          used === null ? '-' : bytesText(used.mem_bytes),
          agent_version ?? '-',
          faults.map(({ kind }) => kind).join(','),
        ]);
        const columns = ['host', 'region', 'status', 'containers', 'memory', 'agent', 'faults'];
        show(all, tableOf(columns, rows, 'There are no hosts.', paintOf(context)));
      }),
    );
  host
    .command('join-token <key>')
    .description('a one-time token, with which a host enrols')
    .option('--region <region>', 'the region of a new host; default: default')
    .action(
      action<[string, { region?: string }]>(terminal, async ({ api, show }, key, { region }) => {
        const all = await allOf((query) => api.GET('/api/v2/operator/hosts', { params: { query } }));
        const known = all.find((one) => one.key === key);
        if (known !== undefined && known.region !== (region ?? known.region))
          throw new Refused(`${key} is in region ${known.region}, and a host keeps its region: remove it first`);
        const made =
          known === undefined
            ? await dataOf(api.POST('/api/v2/operator/hosts', { body: { key, region: region ?? 'default' } }))
            : await dataOf(api.POST('/api/v2/operator/hosts/{key}/join-token', { params: path(key) }));
        show(made, made.join_token);
      }),
    );
  const patching = (name: string, description: string, body: { cordoned?: boolean; draining?: boolean }): void => {
    host
      .command(`${name} <key>`)
      .description(description)
      .action(
        action<[string]>(terminal, async ({ api, show }, key) => {
          show(await dataOf(api.PATCH('/api/v2/operator/hosts/{key}', { params: path(key), body })), key);
        }),
      );
  };
  patching('cordon', 'place no more containers on a host', { cordoned: true });
  patching('uncordon', 'place containers on it again', { cordoned: false, draining: false });
  patching('drain', 'move its containers to other hosts', { draining: true });
  host
    .command('rm <key>')
    .description('remove a host that is drained or lost')
    .option('--force', 'also one that is neither: it is cut off')
    .action(
      action<[string, { force?: true }]>(terminal, async ({ api, show }, key, { force }) => {
        const query = force === true ? { force } : {};
        try {
          await doneOf(api.DELETE('/api/v2/operator/hosts/{key}', { params: { ...path(key), query } }));
        } catch (error) {
          if (!(error instanceof ApiError) || error.status !== 409) throw error;
          throw new Refused(error.message.replace('?force=true', '--force'));
        }
        show({ key }, key);
      }),
    );
}
