/** The profiles of the command line for this `npm start`: nobody has to sign in to try it. */
import { join } from 'node:path';
import { writeProfiles, type Profile } from '../../cli/profiles.ts';
import { say } from '../steps.ts';
import type { Stack } from '../stack/stack.ts';

export const profilesFile = (stateFolder: string): string => join(stateFolder, 'profiles.json');

/** `demo`, a tenant, is the current one; `operator` is the operator of all tenants. */
export function writeDemoProfiles(path: string, { api, tokens }: Stack): void {
  const profileOf = ({ token }: { readonly token: string }): Profile => ({ server: api.baseUrl, token });
  const profiles = { demo: profileOf(tokens.tenants.demo), operator: profileOf(tokens.operator) };
  writeProfiles(path, { current: 'demo', profiles });
}

export function showCommands(path: string, container: string, more: readonly string[] = []): void {
  say('  Try, in another shell in this folder:');
  say(`  export LONGSHORE_CONFIG=${path}`);
  for (const command of ['ps', `logs -n 5 ${container}`, ...more, `stop ${container}`, '--profile operator host ls']) {
    say(`  npx longshore ${command}`);
  }
  say('');
}
