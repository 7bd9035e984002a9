/** `host`: `ls` for everyone, the others for operators. */
import type { Command } from 'commander';
import { dataOf, doneOf } from '../client/api.ts';
import { ApiError } from '../client/errors.ts';
import { allOf } from '../client/pages.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { listing, showList } from '../terminal/list.ts';
import { bytesText } from '../terminal/quantities.ts';

/** All hosts for an operator, those of the tenant's regions for others. */
async function list(context: Context): Promise<void> {
  const { api } = context;
  const nameOf = ({ key }: { readonly key: string }): string => key;
  try {
    showList(context, {
      items: await allOf((query) => api.GET('/api/v2/operator/hosts', { params: { query } })),
      columns: {
        host: nameOf,
        region: ({ region }) => region,
        status: ({ status, draining, cordoned }) =>
          `${status}${draining ? ', draining' : cordoned ? ', cordoned' : ''}`,
        containers: ({ used }) => (used === null ? '-' : String(used.containers)),
        memory: ({ used }) => (used === null ? '-' : bytesText(used.mem_bytes)),
        agent: ({ agent_version }) => agent_version ?? '-',
        faults: ({ faults }) => faults.map(({ kind }) => kind).join(','),
      },
      nameOf,
      empty: 'There are no hosts.',
    });
    return;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'forbidden') throw error;
  }
  showList(context, {
    items: await allOf((query) => api.GET('/api/v2/compute/hosts', { params: { query } })),
    columns: { host: nameOf, region: ({ region }) => region },
    nameOf,
    empty: 'There are no hosts in your regions.',
  });
}

export function addHosts(program: Command, terminal: Terminal): void {
  const host = program.command('host').description('Manage hosts (all but ls: operators only)');
  const path = (key: string) => ({ path: { key } });
  listing(host.command('ls').description('List all hosts, or those of your regions if you are no operator')).action(
    action(terminal, list),
  );
  host
    .command('join-token <key>')
    .description('Create a one-time token that enrols a host')
    .option('--region <region>', 'Region of a new host (default: "default")')
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
  patching('cordon', 'Stop placing containers on a host', { cordoned: true });
  patching('uncordon', 'Resume placing containers on a host', { cordoned: false, draining: false });
  patching('drain', 'Move the containers of a host to other hosts', { draining: true });
  host
    .command('rm <key>')
    .description('Remove a host that is drained or lost')
    .option('--force', 'Remove the host in any status, and cut it off')
    .action(
      action<[string, { force?: true }]>(terminal, async ({ api, show }, key, { force }) => {
        const query = force === true ? { force } : {};
        try {
          await doneOf(api.DELETE('/api/v2/operator/hosts/{key}', { params: { ...path(key), query } }));
        } catch (error) {
          if (!(error instanceof ApiError) || error.code !== 'conflict') throw error;
          if ((error.reason ?? 'in_use') !== 'in_use') throw error;
          throw new Refused(
            'containers may run on this host: drain it and wait until none is left, or use --force to fence it',
          );
        }
        show({ key }, key);
      }),
    );
}
