/** The types that this folder uses of workerd. workerd's own types would replace those of Node. */
declare module 'cloudflare:workers' {
  export interface Sql {
    exec<Row>(query: string, ...values: unknown[]): Iterable<Row>;
  }
  export abstract class DurableObject<Env> {
    protected readonly ctx: { readonly storage: { readonly sql: Sql } };
    constructor(ctx: unknown, env: Env);
  }
}
