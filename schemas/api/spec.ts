/**
 * The document of a container: all that is declared of it, read and written as one. The owner's
 * routes and the parts of a container (labels, policy, secrets) are views of it (ADR 49).
 */
import Type, { type Static } from 'typebox';
import { HostKey } from '../ids.ts';
import {
  containerFields,
  metadataNames,
  notedNames,
  partNames,
  schemasOf,
  shownOf,
  type ContainerSpec,
} from './fields/container.ts';
import { Files } from './fields/files-part.ts';
import { nullable } from './nullable.ts';
import { PolicyBody, PolicyView, type Policy } from './policy.ts';
import { ContainerSecrets, ContainerSecretsBody } from './secret.ts';

/** Fields that stand at the top of the document as they stand in a container. */
export const plainNames = ['env', 'ports', 'cpu_limit', 'mem_limit'] as const;
/** Fields of its part `image`. */
export const imageNames = ['registry', 'repository', 'tag', 'digest'] as const;

const Desired = Type.Enum(['running', 'stopped']);
const given = <F extends keyof typeof containerFields>(names: readonly F[]) =>
  schemasOf(names, ({ given: schema }) => Type.Optional(nullable(schema)));

const shownFields = {
  ...shownOf(['name']),
  image: Type.Object(shownOf(imageNames), { additionalProperties: false }),
  ...shownOf(['host_key', ...plainNames]),
  ...shownOf(partNames),
  policy: PolicyView,
  secrets: ContainerSecrets,
  ...shownOf(metadataNames),
  ...shownOf(notedNames),
  desired: Desired,
};

/** As owners answer it: of files, the hash of their contents (ADR 49). */
export const StoredSpec = Type.Object(shownFields);
export type StoredSpec = Static<typeof StoredSpec>;

/** `GET /api/v2/containers/:id/spec` */
export const Spec = Type.Object({ ...shownFields, files: Files }, { additionalProperties: false });
export type Spec = Static<typeof Spec>;

/**
 * `PUT` of it, and `POST /api/v2/containers`. An absent part, or null, is its default; but in a PUT
 * absent `desired` and `host_key` stay as they are.
 */
export const SpecBody = Type.Object(
  {
    name: containerFields.name.given,
    image: Type.Optional(nullable(Type.Object(given(imageNames), { additionalProperties: false }))),
    host_key: Type.Optional(nullable(HostKey)),
    ...given(plainNames),
    ...given(partNames),
    policy: Type.Optional(nullable(PolicyBody)),
    secrets: Type.Optional(nullable(ContainerSecretsBody)),
    ...given(metadataNames),
    ...given(notedNames),
    desired: Type.Optional(nullable(Desired)),
  },
  { additionalProperties: false },
);

/** `PATCH` of it: a JSON merge patch (RFC 7396) of the document. */
export const SpecPatch = Type.Object({}, { additionalProperties: true, description: 'A merge patch of the document.' });

/** A checked document, as a gateway sends it to the container's owner. */
export interface Declaration {
  readonly spec: ContainerSpec;
  readonly policy: Policy;
  readonly secrets: ContainerSecrets;
  /** Absent if it stays as it is. */
  readonly desired?: Static<typeof Desired>;
  readonly host_key?: HostKey;
}

/** The effect that a write would have, for `dry_run=true`, which changes nothing. */
export const SpecPlan = Type.Object(
  {
    action: Type.Enum(['create', 'replace', 'change', 'none'], {
      description:
        '`replace`: another container takes the place of the one that runs, as an update does. `change`: what runs stays.',
    }),
    changed: Type.Array(Type.String(), { description: 'Parts of the document that would have another value.' }),
    move: Type.Optional(
      Type.Object(
        {
          from: HostKey,
          to: HostKey,
          volumes: Type.Array(Type.String(), { description: 'Paths whose data stays on the host that it leaves.' }),
        },
        { description: 'The container would leave its host, and start on another one. Absent if it stays.' },
      ),
    ),
  },
  { additionalProperties: false, description: 'With `dry_run=true`: `data` is the document as it would be.' },
);
export type SpecPlan = Static<typeof SpecPlan>;
