/** Requests as they go over the wire, made beforehand: a load generator should cost little. */
import { compute, image, type Declared, type System, type Tenant } from '../ground.ts';

export interface Traffic {
  /** One is picked at random for each request. */
  readonly heads: readonly string[];
  /** What follows it, with a number of eight digits between the two, another for each request. */
  readonly body?: readonly [before: string, after: string];
}

export const numberDigits = 8;

const head = (system: System, line: string, { token }: Tenant, more: readonly string[] = []): string =>
  [`${line} HTTP/1.1`, `host: ${new URL(system.baseUrl).host}`, `authorization: Bearer ${token}`, ...more, '\r\n'].join(
    '\r\n',
  );

export const gets = (system: System, asks: readonly { readonly tenant: Tenant; readonly path: string }[]): Traffic => ({
  heads: asks.map(({ tenant, path }) => head(system, `GET ${path}`, tenant)),
});

export const reads = (system: System, declared: readonly Declared[]): Traffic =>
  gets(
    system,
    declared.map(({ tenant, id }) => ({ tenant, path: `${compute}/${id}` })),
  );

/** `prefix` makes the names unlike those of any other traffic. */
export function creates(system: System, tenants: readonly Tenant[], prefix: string): Traffic {
  const marker = '#';
  const [before = '', after = ''] = JSON.stringify({ name: `${prefix}-${marker}`, ...image }).split(marker);
  const bytes = before.length + numberDigits + after.length;
  const headers = ['content-type: application/json', `content-length: ${bytes}`];
  return { heads: tenants.map((tenant) => head(system, `POST ${compute}`, tenant, headers)), body: [before, after] };
}
