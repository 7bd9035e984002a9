/** Two gateways at which people sign in, with a real provider, real actors and a real browser. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { Test } from 'tap';
import { startNats } from '../../../dev/servers/nats.ts';
import { startRedis } from '../../../dev/servers/redis.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { startBalancer } from '../../support/sign-in/balancer.ts';
import { clientId, clientSecret, startProvider, type People } from '../../support/sign-in/provider.ts';
import { startPrograms, type NatsAccess } from '../support/programs.ts';

export const people: People = {
  alice: { groups: ['acme-developers'] },
  bob: { groups: ['acme-developers', 'beta-readers'] },
  olga: { groups: ['platform'] },
  mallory: { groups: ['strangers'] },
};

export const rules = [
  { claim: 'groups', value: 'acme-developers', tenant: 'acme', scopes: ['read', 'deploy', 'admin'] },
  { claim: 'groups', value: 'beta-readers', tenant: 'beta', scopes: ['read'] },
  { claim: 'groups', value: 'platform', tenant: 'operator', scopes: ['operator'] },
];

export async function startWorld(t: Test, settings: Record<string, string> = {}) {
  const folder = temporaryFolder(t);
  const [rulesFile, secretFile] = [join(folder, 'rules.json'), join(folder, 'secret')];
  writeFileSync(rulesFile, JSON.stringify(rules));
  writeFileSync(secretFile, `${clientSecret}\n`);
  const balancer = await startBalancer(t);
  const publicUrl = balancer.url;
  const provider = await startProvider(t, { redirectUri: `${publicUrl}/login/callback`, people });
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const redis = await startRedis({ folder: join(folder, 'redis') });
  t.teardown(() => redis.stop());
  const access: NatsAccess = { ...nats, urls: [nats.url] };
  const gateway = {
    ...redis.settings,
    VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    PUBLIC_URL: publicUrl,
    SIGN_IN_ISSUER: provider.issuer,
    SIGN_IN_CLIENT_ID: clientId,
    SIGN_IN_CLIENT_SECRET_FILE: secretFile,
    SIGN_IN_RULES_FILE: rulesFile,
    ...settings,
  };
  const { gateways } = await startPrograms(t, folder, access, { actors: {}, gateway }, { actors: 1, gateways: 2 });
  const urls = gateways.map(({ baseUrl }) => baseUrl);
  balancer.spreadOver(urls);
  return { provider, publicUrl, gateways: urls };
}

/** Signs in at the page of the provider, and agrees to what it asks. */
export async function signInAs(page: Page, login: string): Promise<void> {
  await page.fill('input[name=login]', login);
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  await page.waitForSelector('h1');
  const consent = page.locator('input[name=prompt][value=consent]');
  if ((await consent.count()) > 0) await page.click('button[type=submit]');
}

export const newPage = async (browser: Browser): Promise<{ context: BrowserContext; page: Page }> => {
  const context = await browser.newContext();
  return { context, page: await context.newPage() };
};
