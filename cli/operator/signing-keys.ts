/** `signing-key`: the keys that sign the cluster's own tokens, for operators. */
import type { Command } from 'commander';
import { dataOf, type Schemas } from '../client/api.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { listing, showList } from '../terminal/list.ts';
import { agoText } from '../terminal/table.ts';

const showAll = (context: Context, items: readonly Schemas['SigningKey'][]): void =>
  showList(context, {
    items,
    columns: {
      key: ({ id }) => id,
      signs: ({ current, expires_at }) => (current ? 'current' : `until ${expires_at ?? '-'}`),
      age: ({ inserted_at }) => agoText(inserted_at, context.terminal.nowMs()),
    },
    nameOf: ({ id }) => id,
    empty: 'There are no keys yet.',
  });

export function addSigningKeys(program: Command, terminal: Terminal): void {
  const key = program
    .command('signing-key')
    .description('Manage the keys that sign the tokens of the cluster (operators only)');
  listing(key.command('ls').description('List signing keys')).action(
    action(terminal, async (context) => {
      showAll(context, await dataOf(context.api.GET('/api/v2/operator/signing-keys')));
    }),
  );
  key
    .command('rotate')
    .description('Create a signing key, and sign new tokens with it; older tokens stay valid')
    .option('--end-others', 'Refuse every token that an earlier key has signed, within two minutes')
    .action(
      action<[{ endOthers?: true }]>(terminal, async (context, { endOthers }) => {
        const query = endOthers === true ? { end_others: true } : {};
        const made = context.api.POST('/api/v2/operator/signing-keys/rotate', { params: { query } });
        showAll(context, await dataOf(made));
      }),
    );
}
