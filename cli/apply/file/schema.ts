/**
 * The file of `longshore apply` as a schema: for its faults, and for editors (`--schema`). The
 * fields of a container, a peer and a login are those of the API.
 */
import Type, { type Static } from 'typebox';
import { projectPattern } from '../../../schemas/api/fields/container.ts';
import { PeerCreateBody, PeerUpdateBody } from '../../../schemas/api/peer.ts';
import { PolicyBody } from '../../../schemas/api/policy.ts';
import { ContainerSecretsBody, LoginBody } from '../../../schemas/api/secret.ts';
import { envKeyPattern } from '../../../schemas/ids.ts';
import { entryProperties, Text } from './fields.ts';

const closed = { additionalProperties: false } as const;

const Source = Type.Object(
  {
    env: Type.Optional(Type.String({ pattern: envKeyPattern, description: 'A variable of the shell.' })),
    file: Type.Optional(Type.String({ minLength: 1, description: 'A file, relative to the folder of this one.' })),
  },
  { ...closed, description: 'One of `env` and `file`.' },
);
export type Source = Static<typeof Source>;

const SecretEntry = Type.Object(
  {
    value: Type.Optional(Text({ description: 'The value itself: who reads the file knows it.' })),
    value_from: Type.Optional(Source),
  },
  { ...closed, description: 'One of `value` and `value_from`.' },
);

const LoginEntry = Type.Object(
  {
    username: LoginBody.properties.username,
    password: Type.Optional(Text({ description: 'The password itself: who reads the file knows it.' })),
    password_from: Type.Optional(Source),
  },
  { ...closed, description: 'One of `password` and `password_from`.' },
);

const ContainerEntry = Type.Object(
  {
    image: Type.String({ minLength: 1, description: 'Such as nginx:1.29 or registry.example.com/team/web@sha256:…' }),
    ...entryProperties,
    policy: Type.Optional(PolicyBody),
    secrets: Type.Optional(ContainerSecretsBody),
  },
  closed,
);
export type ContainerEntry = Static<typeof ContainerEntry>;

const { name: _, ...peerFields } = PeerCreateBody.properties;

const PeerEntry = Type.Object({ ...peerFields, enabled: PeerUpdateBody.properties.enabled }, closed);
export type PeerEntry = Static<typeof PeerEntry>;

/** Items of one kind in a file. */
const itemsMax = 200;
const items = { maxProperties: itemsMax } as const;
const names = Type.Optional(Type.Array(Type.String(), { maxItems: itemsMax, uniqueItems: true }));

export const ApplyFile = Type.Object(
  {
    name: Type.Optional(
      Type.String({ pattern: projectPattern, description: 'Marks containers as those of this file.' }),
    ),
    registries: Type.Optional(
      Type.Record(Type.String(), LoginEntry, { ...items, description: 'Logins, by registry.' }),
    ),
    secrets: Type.Optional(Type.Record(Type.String(), SecretEntry, { ...items, description: 'By name.' })),
    containers: Type.Optional(
      Type.Record(Type.String(), ContainerEntry, { ...items, description: 'By name; they start in this order.' }),
    ),
    peers: Type.Optional(Type.Record(Type.String(), PeerEntry, { ...items, description: 'VPN peers, by name.' })),
    removed: Type.Optional(
      Type.Object(
        { registries: names, secrets: names, peers: names },
        { ...closed, description: 'What `--prune` removes beside containers that are not in the file any more.' },
      ),
    ),
  },
  { ...closed, title: 'The file of longshore apply' },
);
export type ApplyFile = Static<typeof ApplyFile>;

/** The schema as JSON, for an editor. */
export const schemaText = (): string =>
  JSON.stringify({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...ApplyFile }, null, 2);
