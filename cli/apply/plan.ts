/** Plans the steps from what exists to what a file declares, in their order. Pure. */
import { hashesOf, hexWord } from '../../schemas/text-hash.ts';
import {
  fieldOf,
  metadataNames,
  metadataOf,
  notedNames,
  partNames,
  type MetadataName,
  type NotedName,
  type PartName,
} from '../../schemas/api/fields/container.ts';
import { defaultPolicy, policyShown, type PolicyView } from '../../schemas/api/policy.ts';
import type { ContainerSecrets } from '../../schemas/api/secret.ts';
import { plainNames } from '../../schemas/api/spec.ts';
import { isValues } from '../../lib/values.ts';
import type { Schemas } from '../client/api.ts';
import { imageText } from '../terminal/table.ts';
import type { DocumentBody, Plan as ServerPlan } from '../tenant/document.ts';
import { isCompleted, isUnderWay } from '../tenant/done.ts';
import { projectOf } from './file/checks.ts';
import type { Declaration, Wanted, WantedContainer, WantedLogin, WantedPeer, WantedSecret } from './file/model.ts';
import type { Remark } from './file/tree.ts';
import type { Found, FoundContainer, Peer } from './found.ts';

/** Change of a field; null if the field is absent. */
export interface Difference {
  readonly field: string;
  readonly from: string | null;
  readonly to: string | null;
}

/** A value that can't be read back: it is sent, and the answer says whether it has changed. */
export type SetStep = (
  | { readonly kind: 'registry'; readonly wanted: WantedLogin }
  | { readonly kind: 'secret'; readonly wanted: WantedSecret }
) & {
  readonly action: 'create' | 'set';
  readonly name: string;
  readonly differences: readonly Difference[];
  /** Previous version of the secret, or time of the login; null if there was none. */
  readonly before: string | null;
};

export interface ContainerCreate {
  readonly kind: 'container';
  readonly action: 'create';
  readonly name: string;
  readonly wanted: WantedContainer;
  readonly body: DocumentBody;
  readonly differences: readonly Difference[];
  /** Id of a container with its name that is being removed, and must be gone first. */
  readonly after: string | undefined;
}

export type Move = NonNullable<ServerPlan['move']>;

/** A container that exists and is declared. */
export interface ContainerChange {
  readonly kind: 'container';
  /**
   * - `update`: another document is written.
   * - `start`: as declared, but stopped or failed.
   * - `pull`: as declared, and its host looks again at the image that its tag names.
   * - `keep`: as declared.
   * - `wait`: as declared, but on its way up or unhealthy.
   */
  readonly action: 'update' | 'start' | 'pull' | 'keep' | 'wait';
  readonly name: string;
  readonly wanted: WantedContainer;
  readonly found: FoundContainer;
  readonly differences: readonly Difference[];
  /** The document to write; `undefined` if there is nothing to write. */
  readonly body: DocumentBody | undefined;
  /** Started again because it has failed, although it is declared to run. */
  readonly isRetried: boolean;
  /** Another container takes the place of the running one; absent if the server was not asked. */
  readonly isReplaced?: boolean;
  /** Move to another host; the data of its volumes stays behind. */
  readonly move?: Move;
}

export interface PeerCreate {
  readonly kind: 'peer';
  readonly action: 'create';
  readonly name: string;
  readonly wanted: WantedPeer;
  readonly differences: readonly Difference[];
}

export interface PeerChange {
  readonly kind: 'peer';
  readonly action: 'update' | 'keep';
  readonly name: string;
  readonly id: string;
  readonly patch: Schemas['PeerPatch'];
  readonly differences: readonly Difference[];
}

export interface Removal {
  readonly kind: 'container' | 'secret' | 'registry' | 'peer';
  readonly action: 'remove';
  readonly name: string;
  /** The name of a resource without an id. */
  readonly id: string;
  readonly differences: readonly Difference[];
}

export type Step = SetStep | ContainerCreate | ContainerChange | PeerCreate | PeerChange | Removal;

export interface Plan {
  readonly steps: readonly Step[];
  readonly faults: readonly Remark[];
}

export function planOf(wanted: Wanted, found: Found): Plan {
  const steps = [
    ...wanted.registries.map((login) => loginStep(login, found)),
    ...wanted.secrets.map((secret) => secretStep(secret, found)),
    ...wanted.containers.map((container) => containerStep(container, found.containers.get(container.name))),
    ...wanted.peers.map((peer) => peerStep(peer, found.peers.get(peer.name))),
    ...removals(wanted, found),
  ];
  return { steps, faults: [...faultsOf(wanted, found)] };
}

/** Failures that can be foreseen are reported before anything is changed. */
function* faultsOf(wanted: Wanted, found: Found): Generator<Remark> {
  const there = [...found.secrets.keys()].filter((name) => !wanted.removed.secrets.includes(name));
  const secrets = new Set([...wanted.secrets.map(({ name }) => name), ...there]);
  for (const { name, document, remark } of wanted.containers) {
    const { secrets: uses, project } = document;
    const unknown = `is not a secret of this file, and you have none with that name`;
    for (const [key, secret] of Object.entries(uses.env))
      if (!secrets.has(secret)) yield remark(`"${secret}" ${unknown}`, 'secrets', 'env', key);
    for (const [path, { secret }] of Object.entries(uses.files))
      if (!secrets.has(secret)) yield remark(`"${secret}" ${unknown}`, 'secrets', 'files', path);
    const one = found.containers.get(name);
    if (one === undefined || one.status.status === 'removing') continue;
    const other = projectOf(one.document);
    if (other !== null && other !== project)
      yield remark(`"${name}" belongs to ${other}, not to ${project ?? 'this file, which has no name'}: ${otherName}`);
  }
  for (const { name, fields, remark } of wanted.peers) {
    const network = found.peers.get(name)?.network;
    if (network !== undefined && fields.network != null && fields.network !== network)
      yield remark(`is in the network ${network}, and can't be moved: remove it first`, 'network');
  }
}

const otherName = 'choose another name for it, or for the project (-p)';

function loginStep(wanted: WantedLogin, { registries }: Found): SetStep {
  const { name, username } = wanted;
  const found = registries.get(name);
  const from = found?.username ?? null;
  const differences = [
    ...(from === username ? [] : [{ field: 'username', from, to: username }]),
    ...sourceOf('password', wanted),
  ];
  const action = found === undefined ? 'create' : 'set';
  return { kind: 'registry', action, name, wanted, differences, before: found?.updated_at ?? null };
}

function secretStep(wanted: WantedSecret, { secrets }: Found): SetStep {
  const { name } = wanted;
  const version = secrets.get(name);
  const action = version === undefined ? 'create' : 'set';
  const before = version === undefined ? null : String(version);
  return { kind: 'secret', action, name, wanted, differences: sourceOf('value', wanted), before };
}

/** Source of the value. The plan shows it because somebody else may have written the file. */
function sourceOf(field: string, { source }: WantedSecret): Difference[] {
  if (source === undefined || 'value' in source) return [{ field, from: null, to: 'as this file has it' }];
  const to = source.env === undefined ? `from the file ${source.file ?? ''}` : `from the variable ${source.env}`;
  return [{ field, from: null, to }];
}

function containerStep(wanted: WantedContainer, found: FoundContainer | undefined): ContainerCreate | ContainerChange {
  const { name, document, host } = wanted;
  const place = host === undefined ? {} : { host_key: host };
  if (found === undefined || found.status.status === 'removing') {
    const differences = differencesOf(blank, fieldsOf(document)).map((one) => ({ ...one, from: null }));
    const body = { ...document, ...place };
    return { kind: 'container', action: 'create', name, wanted, body, differences, after: found?.id };
  }
  const { status } = found;
  // Fields of the document that this release does not know stay unchanged.
  const { host_key, desired, ...before } = found.document;
  const isMoved = host !== undefined && host !== host_key;
  const differences = [
    ...differencesOf(fieldsOf(before), fieldsOf(document)),
    ...(isMoved ? [{ field: 'host_key', from: host_key ?? null, to: host }] : []),
  ];
  const isChanged = differences.length > 0;
  const isOver = status.reason === 'completed' && !isChanged;
  const isStarted = !isOver && (desired === 'stopped' || status.status === 'failed');
  const isDeclared = isStarted && desired === 'stopped';
  const isPulled = wanted.isPulled && !isOver;
  const body = { ...before, ...document, ...place, ...(isDeclared ? { desired: 'running' as const } : {}) };
  return {
    kind: 'container',
    action: actionOf(status, { isChanged, isStarted, isPulled }),
    name,
    wanted,
    found,
    differences,
    body: isChanged || isDeclared || isPulled ? body : undefined,
    isRetried: isStarted && !isDeclared,
  };
}

type Needs = Readonly<Record<'isChanged' | 'isStarted' | 'isPulled', boolean>>;

function actionOf(
  status: FoundContainer['status'],
  { isChanged, isStarted, isPulled }: Needs,
): ContainerChange['action'] {
  if (isChanged) return 'update';
  if (isStarted) return 'start';
  if (isPulled) return 'pull';
  const isUp = status.status === 'running' && status.reason !== 'unhealthy';
  return (isUp || isCompleted(status)) && !isUnderWay(status) ? 'keep' : 'wait';
}

type Fields = ReadonlyMap<string, string>;
const nothing: Fields = new Map();

type Texts = readonly (readonly [field: string, text: string])[];

/** Texts of a field for people: a map by its keys, and nothing for an absent value. */
function textsOf(name: string, value: unknown, isWithin = false): Texts {
  if (isValues(value)) return Object.entries(value).flatMap(([key, one]) => textsOf(`${name}.${key}`, one, true));
  // A command may be empty, and its words may have blanks in them.
  if (Array.isArray(value)) return value.length + Number(isWithin) === 0 ? [] : [[name, listText(value, isWithin)]];
  return value === null || value === undefined ? [] : [[name, String(value)]];
}

const listText = (list: readonly unknown[], isWithin: boolean): string =>
  isWithin ? JSON.stringify(list) : list.join(', ');

/** Fields of a container as texts for people. */
function fieldsOf(document: Declaration): Fields {
  const { image, policy, secrets } = document;
  const ofUses = [
    ...Object.entries(secrets.env).map(([key, secret]) => [`secrets.env.${key}`, secret] as const),
    ...Object.entries(secrets.files).map(([path, file]) => [`secrets.files.${path}`, textOfFile(file)] as const),
  ];
  const { restart, stop_grace_seconds, stop_signal, health, remove_after_seconds } = policy;
  return new Map([
    ['image', imageText(image)],
    ...[...plainNames, ...notedNames, ...partNames, ...metadataNames]
      .filter((name) => name !== 'files')
      .flatMap((name) => textsOf(name, document[name])),
    ...Object.entries(document.files).map(([path, file]) => [`files.${path}`, textOfContent(file)] as const),
    ['policy.restart', restart],
    ['policy.stop_grace_seconds', String(stop_grace_seconds)],
    ['policy.stop_signal', stop_signal],
    ...textsOf('policy.remove_after_seconds', remove_after_seconds),
    ...(health === null ? [] : healthFields(health)),
    ...ofUses,
  ]);
}

/** Size and hash of a file, which may be too long to show. */
const textOfContent = ({ content, mode }: Declaration['files'][string]): string =>
  `${Buffer.byteLength(content)} bytes, mode 0${mode.toString(8)}, hash ${hashesOf(content).map(hexWord).join('')}`;

/** Defaults, which are not shown for a new container, except its limits. */
const blank = fieldsOf({
  name: '',
  image: { registry: '', repository: null, tag: null, digest: null },
  ...{ env: {}, ports: [], cpu_limit: '', mem_limit: '' },
  ...(Object.fromEntries([...notedNames, ...partNames].map((name) => [name, fieldOf(name).fallback])) as Pick<
    Declaration,
    NotedName | PartName
  >),
  ...(metadataOf({}) as Pick<Declaration, MetadataName>),
  policy: policyShown(defaultPolicy),
  secrets: { env: {}, files: {} },
});

/** Separate fields, because a single text would be cut before the difference. */
function healthFields(health: NonNullable<PolicyView['health']>): (readonly [field: string, text: string])[] {
  if ('none' in health) return [['policy.health', 'none']];
  const { command, http, tcp, interval, timeout, retries, start_period, restart_unhealthy } = health;
  const what = {
    command: command === undefined ? undefined : JSON.stringify(command),
    http: http === undefined ? undefined : `${http.port}${http.path}`,
    tcp: tcp?.port,
  };
  return Object.entries({ ...what, interval, timeout, retries, start_period, restart_unhealthy }).flatMap(
    ([field, value]) => (value === undefined ? [] : [[`policy.health.${field}`, String(value)] as const]),
  );
}

const textOfFile = ({ secret, mode, uid, gid }: ContainerSecrets['files'][string]): string =>
  `${secret}, mode 0${mode.toString(8)}, owner ${uid}:${gid}`;

function differencesOf(before: Fields, after: Fields): Difference[] {
  const fields = [...new Set([...after.keys(), ...before.keys()])];
  return fields
    .map((field) => ({ field, from: before.get(field) ?? null, to: after.get(field) ?? null }))
    .filter(({ from, to }) => from !== to);
}

const momentOf = (time: string | null | undefined): string | null =>
  time == null ? null : new Date(time).toISOString();
const peerList = (list: readonly string[] | null | undefined): string | null => list?.join(', ') ?? null;

/** Changeable fields of a peer, as text for people and for comparison. */
const peerTexts = (peer: Pick<Peer, 'enabled' | 'expires_at' | 'routes' | 'dns'>): Fields => {
  const texts = {
    enabled: String(peer.enabled),
    expires_at: momentOf(peer.expires_at),
    routes: peerList(peer.routes),
    dns: peerList(peer.dns),
  };
  return new Map(Object.entries(texts).flatMap(([field, text]) => (text === null ? [] : [[field, text] as const])));
};

function peerStep(wanted: WantedPeer, found: Peer | undefined): PeerCreate | PeerChange {
  const { name, fields } = wanted;
  const { enabled = true, expires_at = null, routes = null, dns = null, network } = fields;
  const declared = { enabled, expires_at, routes, dns };
  if (found === undefined) {
    const place = network == null ? [] : [{ field: 'network', from: null, to: network }];
    return {
      kind: 'peer',
      action: 'create',
      name,
      wanted,
      differences: [...place, ...differencesOf(nothing, peerTexts(declared))],
    };
  }
  const differences = differencesOf(peerTexts(found), peerTexts(declared));
  const changed = new Set(differences.map(({ field }) => field));
  const patch = Object.fromEntries(Object.entries(declared).filter(([field]) => changed.has(field)));
  return { kind: 'peer', action: differences.length > 0 ? 'update' : 'keep', name, id: found.id, patch, differences };
}

/** Removes containers first, so that no secret is in use any more. */
function removals({ removed }: Wanted, found: Found): Removal[] {
  const removal = (kind: Removal['kind'], name: string, id: string = name): Removal => ({
    kind,
    action: 'remove',
    name,
    id,
    differences: [],
  });
  return [
    ...found.strays.map(({ name, id }) => removal('container', name, id)),
    ...removed.secrets.filter((name) => found.secrets.has(name)).map((name) => removal('secret', name)),
    ...removed.registries.filter((name) => found.registries.has(name)).map((name) => removal('registry', name)),
    ...removed.peers.flatMap((name) => {
      const peer = found.peers.get(name);
      return peer === undefined ? [] : [removal('peer', name, peer.id)];
    }),
  ];
}

const perhaps: readonly Step['action'][] = ['keep', 'wait', 'set', 'pull'];

/** True if a step certainly changes something; a value, or an image, may be the same as before. */
export const isChange = ({ action }: Step): boolean => !perhaps.includes(action);
