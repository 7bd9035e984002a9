/**
 * People sign in with a real provider, in Chromium. Their requests go to two gateways in turn, so
 * each finishes what the other began.
 */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { BrowserContext, Page } from 'playwright-core';
import { cookieName } from '../../../gateway/auth/credentials.ts';
import { startBrowser } from '../../support/sign-in/browser.ts';
import type { AuditLine } from '../../../schemas/api/audit/line.ts';
import { testInNamespace } from '../../support/namespace.ts';
import { skipWithoutTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { commandLine } from '../support/command-line.ts';
import { newPage, signInAs, startWorld } from './world.ts';

const headingOf = (page: Page): Promise<string> => page.innerText('h1');
const textOf = (page: Page): Promise<string> => page.innerText('main');

const tokenIn = async (context: BrowserContext): Promise<string | undefined> =>
  (await context.cookies()).find(({ name }) => name === cookieName)?.value;

async function signIn(t: Test): Promise<void> {
  const world = await startWorld(t);
  const browser = await startBrowser(t);
  const { publicUrl, provider } = world;
  const statusOf = async (gateway: string, token: string, path = '/api/v2/compute'): Promise<number> => {
    const response = await fetch(gateway + path, { headers: { cookie: `${cookieName}=${token}` } });
    await response.text();
    return response.status;
  };
  const statuses = (token: string, path?: string): Promise<number[]> =>
    Promise.all(world.gateways.map((gateway) => statusOf(gateway, token, path)));

  await t.test('of a person in one tenant', async (t) => {
    const { context, page } = await newPage(browser);
    await page.goto(`${publicUrl}/login`);
    await signInAs(page, 'alice');
    t.equal(page.url(), `${publicUrl}/login/session`);
    t.match(await textOf(page), /signed in as alice in tenant acme/);
    const [cookie] = (await context.cookies()).filter(({ name }) => name === cookieName);
    t.match(cookie, { httpOnly: true, sameSite: 'Lax', path: '/' });
    t.equal(await page.evaluate('document.cookie'), '', 'no script sees it');
    const token = (await tokenIn(context)) ?? '';
    t.same(await statuses(token), [200, 200]);
    t.same(await statuses(token, '/api/v2/operator/hosts'), [403, 403]);

    await page.click('text=Sign out');
    t.equal(await headingOf(page), 'Signed out');
    t.equal(await tokenIn(context), undefined);
    await until(
      'no gateway takes the token',
      () => statuses(token),
      (seen) => seen.every((status) => status === 401),
    );
    await context.close();
  });

  await t.test('of a person in two tenants, who chooses', async (t) => {
    const { context, page } = await newPage(browser);
    await page.goto(`${publicUrl}/login?return_to=/login/session?from=here`);
    await signInAs(page, 'bob');
    t.equal(page.url(), `${publicUrl}/login/tenants`);
    t.equal(await tokenIn(context), undefined, 'nobody is signed in before the choice');
    await page.click('button:has-text("beta")');
    t.equal(page.url(), `${publicUrl}/login/session?from=here`);
    t.match(await textOf(page), /as bob in tenant beta.*Scopes: read\./s);

    await page.goto(`${publicUrl}/login?tenant=acme`);
    t.match(await textOf(page), /as bob in tenant acme/, 'one who is named is not asked for');
    await page.goto(`${publicUrl}/login?tenant=operator`);
    t.match(await textOf(page), /You are not in tenant operator here/);
    await context.close();
  });

  await t.test('of an operator, and of one who is in no tenant', async (t) => {
    const operator = await newPage(browser);
    await operator.page.goto(`${publicUrl}/login`);
    await signInAs(operator.page, 'olga');
    t.same(await statuses((await tokenIn(operator.context)) ?? '', '/api/v2/operator/hosts'), [200, 200]);
    await operator.context.close();

    const { context, page } = await newPage(browser);
    await page.goto(`${publicUrl}/login`);
    await signInAs(page, 'mallory');
    t.match(await textOf(page), /You are in no tenant here .*mallory.*; ask the operator/);
    t.equal(await tokenIn(context), undefined);
    await context.close();
  });

  await t.test('of a command line, confirmed in the browser', async (t) => {
    const { config, longshore } = commandLine(t);
    let said = '';
    const login = longshore(['login', '--server', publicUrl, '--tenant', 'acme'], {
      watch: ({ err }) => void (said = err),
    });
    const at = await until('where to confirm', () => /Open (\S+) in a browser/.exec(said)?.[1]);
    const { context, page } = await newPage(browser);
    await page.goto(at);
    t.match(await textOf(page), /A command line at the address .*it acts as you/s);
    await page.click('text=Continue at');
    await page.click('button[type=submit]');
    await signInAs(page, 'bob');
    t.match(await page.innerText('body'), /Sign-in Success/i);
    await context.close();
    t.match(await login, { code: 0, out: /Signed in to/ });
    t.match((await longshore(['whoami'])).out, /tenant +acme\nsubject +bob/);
    t.equal((await longshore(['ps'])).code, 0);
    const { profiles } = JSON.parse(readFileSync(config, 'utf8')) as { profiles: Record<string, { token: string }> };
    const [{ token = '' } = {}] = Object.values(profiles);
    const lines = await fetch(`${publicUrl}/api/v2/audit`, { headers: { authorization: `Bearer ${token}` } });
    const { data } = (await lines.json()) as { data: readonly AuditLine[] };
    const told = data.map(({ action, outcome, by }) => `${by.subject} ${action} ${outcome}`);
    for (const line of ['alice sign_in done', 'alice sign_out done', 'bob sign_in done'])
      t.ok(told.includes(line), line);
    t.match((await longshore(['logout'])).out, /Signed out/);
    await until(
      'no gateway takes the token',
      () => statuses(token),
      (seen) => seen.every((status) => status === 401),
    );
  });

  await t.test('a signed-in person stays so while the provider is away', async (t) => {
    const { context, page } = await newPage(browser);
    await page.goto(`${publicUrl}/login`);
    await signInAs(page, 'alice');
    await provider.stop();
    await page.reload();
    t.match(await textOf(page), /signed in as alice/);
    t.same(await statuses((await tokenIn(context)) ?? ''), [200, 200]);
    const begun = await until(
      'every gateway notices',
      () => Promise.all(world.gateways.map((gateway) => fetch(`${gateway}/login`, { redirect: 'manual' }))),
      (seen) => seen.every(({ status }) => status === 503),
    );
    t.match(await begun[0]?.text(), /identity provider does not answer; people who are signed in stay so/);
    t.match(begun[0]?.headers.get('retry-after'), /^[0-9]+$/);

    await provider.start();
    const other = await newPage(browser);
    await until('it is back', async () => (await other.page.goto(`${publicUrl}/login`))?.status() === 200);
    await signInAs(other.page, 'alice');
    t.match(await textOf(other.page), /signed in as alice/);
    await other.context.close();
    await context.close();
  });
}

const skip = await skipWithoutTools('chromium-headless-shell');
if (skip !== false) t.pass('sign-in', { skip });
else {
  // Chromium breaks off its requests when the network changes (ERR_NETWORK_CHANGED), as it does
  // with every container of another test.
  const tools = ['chromium-headless-shell', 'nats-server', 'redis-server'] as const;
  await testInNamespace({ name: 'sign-in', file: import.meta.filename, tools, timeoutMs: 300_000 }, signIn);
}
