/** Chooses the services of a Compose file that run, and sorts them by their dependencies. Pure. */
import type { Values } from '../../../lib/values.ts';
import { keysOf } from './keys.ts';
import type { Reader } from './reader.ts';
import { booleanOf, countOf, listOf, mapOf } from './values.ts';

interface Dependency {
  readonly on: string;
  readonly isRequired: boolean;
  readonly isToEnd: boolean;
}

const toEnd = 'service_completed_successfully';
const conditions = ['service_started', 'service_healthy', toEnd];

function dependenciesOf(reader: Reader, name: string, service: Values): Dependency[] {
  const path = ['services', name, 'depends_on'];
  const form = 'a list of services, or a map';
  const read = (value: unknown) => listOf(value) ?? mapOf(value);
  const given = reader.take(path, service['depends_on'], read, form) ?? [];
  const links = (listOf(service['links']) ?? []).map((link) => String(link).split(':')[0] ?? '');
  const ofLinks = links.map((on) => ({ on, isRequired: false, isToEnd: false }));
  if (Array.isArray(given)) {
    return [...given.map((on) => ({ on: String(on), isRequired: true, isToEnd: false })), ...ofLinks];
  }
  const ofMap = Object.entries(given).map(([on, how]) => {
    const here = [...path, on];
    const values = reader.take(here, how, mapOf, 'a map') ?? {};
    reader.others(here, values, keysOf.dependsOn);
    const known = (one: unknown) => conditions.find((condition) => condition === one);
    const condition = reader.take([...here, 'condition'], values['condition'], known, conditions.join(', '));
    const isRequired = reader.take([...here, 'required'], values['required'], booleanOf, 'true or false');
    return { on, isRequired: isRequired !== false, isToEnd: condition === toEnd };
  });
  return [...ofMap, ...ofLinks];
}

/** True if a service has zero copies; the number of copies is checked elsewhere. */
function isWithout(reader: Reader, name: string, service: Values): boolean {
  const path = ['services', name];
  const form = 'a whole number';
  const ofDeploy = mapOf(service['deploy'])?.['replicas'];
  const replicas = reader.take([...path, 'deploy', 'replicas'], ofDeploy, countOf, form);
  const scale = reader.take([...path, 'scale'], service['scale'], countOf, form);
  if (scale !== undefined && replicas !== undefined && scale !== replicas)
    reader.fault([...path, 'scale'], 'and deploy.replicas say two things: leave one out');
  return (scale ?? replicas) === 0;
}

/**
 * Services that run with these profiles, each after its dependencies.
 * @param profiles names, with commas between them
 * @param ran receives services that others wait for to their end
 */
export function inOrder(reader: Reader, services: Values, profiles: string, ran: Set<string>): string[] {
  const named = profiles.split(',').map((profile) => profile.trim());
  const ofService = (name: string): Values => mapOf(services[name]) ?? {};
  const isActive = (name: string): boolean => {
    const path = ['services', name, 'profiles'];
    const own = reader.take(path, ofService(name)['profiles'], listOf, 'a list') ?? [];
    return own.length === 0 || named.includes('*') || own.some((profile) => named.includes(String(profile)));
  };
  const active = new Set(Object.keys(services).filter(isActive));
  const placed = new Set<string>();
  const visit = (name: string, above: readonly string[]): void => {
    if (placed.has(name)) return;
    const path = ['services', name, 'depends_on'];
    if (above.includes(name)) return reader.fault(path, `goes in a circle: ${[...above, name].join(' → ')}`);
    for (const { on, isRequired, isToEnd } of dependenciesOf(reader, name, ofService(name))) {
      const isThere = Object.hasOwn(services, on);
      if (active.has(on)) visit(on, [...above, name]);
      else if (isThere && isRequired)
        reader.fault(path, `names "${on}", which its profiles leave out: name one of them in COMPOSE_PROFILES`);
      else if (isRequired) reader.fault(path, `names "${on}", which is no service`);
      if (isToEnd) ran.add(on);
    }
    placed.add(name);
  };
  for (const name of active) visit(name, []);
  const note = (names: readonly string[], key: string, message: string): void => {
    const [first] = names;
    if (first === undefined) return;
    const path = ['services', first, key];
    reader.warnings.push({ path, message: `${message}: ${names.join(', ')}`, isOfFile: true, at: 'key' });
  };
  const left = Object.keys(services).filter((name) => !active.has(name));
  note(left, 'profiles', 'left out by their profiles, as in Compose');
  const empty = new Set([...active].filter((name) => isWithout(reader, name, ofService(name))));
  const [first = ''] = empty;
  note(
    [...empty],
    ofService(first)['scale'] === undefined ? 'deploy' : 'scale',
    'left out because they have no replicas',
  );
  return [...placed].filter((name) => !empty.has(name));
}
