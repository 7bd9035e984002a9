/** Network namespaces in place of containers, with a process in each that obeys orders. */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { enter, strike } from '../../dev/process/ledger.ts';
import { removeNamespace } from '../../dev/process/reap.ts';
import { within } from '../../lib/time/backoff.ts';
import type { Scope } from './machine.ts';

const orderDeadlineMs = 60_000;
/** The folder in which `ip netns` keeps the files of namespaces. */
export const namespaceFolder = '/run/netns';

export type Must = (...command: readonly string[]) => Promise<string>;

/** Before it is made. It is removed after the scope, and also after one that was killed. */
export function ownNamespace(scope: Scope, name: string): void {
  enter({ kind: 'namespace', id: name, name });
  scope.teardown(async () => {
    await removeNamespace(name);
    strike(name);
  });
}

/**
 * Makes one as an engine's sandbox is: IPv6 is off, and there is no interface.
 * @returns its file
 */
export async function makeSandbox(scope: Scope, must: Must): Promise<string> {
  const name = `lss-${randomBytes(4).toString('hex')}`;
  ownNamespace(scope, name);
  await must('ip', 'netns', 'add', name);
  const off = ['lo', 'default'].map((on) => `echo 1 > /proc/sys/net/ipv6/conf/${on}/disable_ipv6`);
  await must('ip', 'netns', 'exec', name, 'sh', '-c', [...off, 'ip link set lo up'].join(' && '));
  return join(namespaceFolder, name);
}

/** Orders that a process obeys, by name. */
type Orders = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;
/** Rejects if the order fails. */
export type Tell<O extends Orders> = <K extends keyof O & string>(
  name: K,
  ...args: Parameters<O[K]>
) => ReturnType<O[K]>;

interface Told {
  readonly number: number;
  readonly name: string;
  readonly args: readonly unknown[];
}
type Answer =
  { readonly number: number; readonly value: unknown } | { readonly number: number; readonly error: string };

/** Starts a program in the namespace of this file; the program calls `obey`. */
export function startInside<O extends Orders>(scope: Scope, file: string, program: string): Tell<O> {
  const child = fork(program, [], { execPath: 'nsenter', execArgv: [`--net=${file}`, process.execPath] });
  scope.teardown(() => child.kill('SIGKILL'));
  // One listener for each order that is under way.
  child.setMaxListeners(0);
  let told = 0;
  return (name, ...args) => {
    const number = ++told;
    const answer = new Promise((resolve, reject) => {
      const hear = (said: Answer): void => {
        if (said.number !== number) return;
        child.off('message', hear);
        if ('error' in said) reject(new Error(said.error));
        else resolve(said.value);
      };
      child.on('message', hear);
      child.send({ number, name, args } satisfies Told);
    });
    return within(answer, orderDeadlineMs, name) as ReturnType<O[typeof name]>;
  };
}

/** Carries out each order that comes, and ends with the process that gives them. */
export function obey(orders: Orders): void {
  process.on('message', ({ number, name, args }: Told) => {
    const order = orders[name] as (...given: readonly unknown[]) => Promise<unknown>;
    order(...args).then(
      (value) => process.send?.({ number, value } satisfies Answer),
      (error: unknown) => process.send?.({ number, error: String(error) } satisfies Answer),
    );
  });
  process.on('disconnect', () => process.exit(0));
}
