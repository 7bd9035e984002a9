/** `tenant` and `revoke`, for operators. */
import type { Command } from 'commander';
import type { StoredCaps, TenantCaps, TenantView } from '../../schemas/api/tenant.ts';
import { defaultCaps } from '../../schemas/limits.ts';
import { dataOf } from '../client/api.ts';
import { allOf } from '../client/pages.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { carryOut, settable, settingsWith, type SetOptions } from '../settings/set.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { listing, showing, showList } from '../terminal/list.ts';

const path = (tenant: string) => ({ params: { path: { tenant } } });

async function list(context: Context): Promise<void> {
  showList(context, {
    items: await allOf((query) => context.api.GET('/api/v2/operator/tenants', { params: { query } })),
    columns: {
      tenant: ({ id }) => id,
      regions: ({ regions }) => regions?.join(',') ?? 'damaged',
      containers: ({ usage, caps }) => `${usage['containers'] ?? 0} of ${caps?.['containers'] ?? '-'}`,
    },
    nameOf: ({ id }) => id,
    empty: 'There are no tenants.',
  });
}

async function get({ api, show }: Context, name: string): Promise<void> {
  const value = await dataOf(api.GET('/api/v2/operator/tenants/{tenant}', path(name)));
  show(value, JSON.stringify(value, null, 2));
}

/**
 * Caps that differ from the defaults. Only these are stored, because some defaults follow the cap
 * of containers.
 */
function ownCaps(caps: TenantView['caps'], usual: TenantCaps): StoredCaps {
  const fallback: Readonly<Record<string, number | null>> = { ...usual, containers: defaultCaps.containers };
  return Object.fromEntries(Object.entries(caps).filter(([name, cap]) => cap !== fallback[name]));
}

async function set(context: Context, name: string, texts: readonly string[], options: SetOptions): Promise<void> {
  // TypeBox comes with it, and only this command needs it.
  const { capsOf, TenantSettings } = await import('../../schemas/api/tenant.ts');
  const { api } = context;
  const { id: _, ...before } = await dataOf(api.GET('/api/v2/operator/tenants/{tenant}', path(name)));
  const usual = capsOf({ containers: before.caps['containers'] ?? null });
  const stored = { ...before, caps: ownCaps(before.caps, usual) };
  const body = (await settingsWith(context, TenantSettings, stored, texts, options)) as typeof stored;
  const after = { ...body, caps: capsOf(body.caps) };
  await carryOut(context, name, [before, after], options, () =>
    dataOf(api.PUT('/api/v2/operator/tenants/{tenant}', { ...path(name), body })),
  );
}

interface RevokeOptions {
  readonly subject?: string;
  readonly token?: string;
  readonly all?: true;
}

async function revoke({ api, show }: Context, name: string, { subject, token, all }: RevokeOptions): Promise<void> {
  if ([subject, token, all].filter((one) => one !== undefined).length !== 1)
    throw new WrongUsage('which tokens? Give one of --subject, --token and --all');
  const body = { ...(subject === undefined ? {} : { sub: subject }), ...(token === undefined ? {} : { jti: token }) };
  const made = await dataOf(api.POST('/api/v2/operator/tenants/{tenant}/revocations', { ...path(name), body }));
  const which = token === undefined ? `tokens issued until ${made.issued_until}` : `token ${token}`;
  show(made, `${which} of ${subject === undefined ? name : `${subject} of ${name}`} refused`);
}

export function addTenants(program: Command, terminal: Terminal): void {
  const tenant = program.command('tenant').description('Manage tenants (operators only)');
  listing(tenant.command('ls').description('List tenants that have anything stored')).action(action(terminal, list));
  showing(tenant.command('get <tenant>').description('Show the regions, caps and registries of a tenant')).action(
    action<[string]>(terminal, get),
  );
  settable(
    tenant
      .command('set <tenant>')
      .description('Change the regions, caps and registries of a tenant; other settings stay'),
    'caps.containers=50 regions=default,eu',
  ).action(action<[string, string[], SetOptions]>(terminal, set));
  program
    .command('revoke <tenant>')
    .description('Revoke the tokens of a tenant that were issued until now (operators only)')
    .option('--subject <sub>', 'Only tokens of this person or program')
    .option('--token <jti>', 'Only the token with this id')
    .option('--all', 'Revoke all tokens of the tenant')
    .action(action<[string, RevokeOptions]>(terminal, revoke));
}
