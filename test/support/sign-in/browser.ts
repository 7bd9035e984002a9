/** Chromium, driven as a person would use it. */
import { chromium, type Browser } from 'playwright-core';
import type { Test } from 'tap';
import { toolHere } from '../../../dev/fetch/tools.ts';

export async function startBrowser(t: Test): Promise<Browser> {
  const { path, env } = await toolHere('chromium-headless-shell');
  const browser = await chromium.launch({
    executablePath: path,
    // The sandbox needs rights that containers do not have.
    args: ['--no-sandbox'],
    env: Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined)),
  });
  t.teardown(() => browser.close());
  return browser;
}
