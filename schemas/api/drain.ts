/** Progress of the drain of a host. */
import Type, { type Static } from 'typebox';
import { ContainerId, TenantId } from '../ids.ts';
import { limits } from '../limits.ts';
import { HostView } from './host.ts';
import { reasons } from './container.ts';
import { nullable } from './nullable.ts';

/**
 * - `pinned`: its tenant chose the host.
 * - `no_host`: no other host has room for it now.
 * - `engine_unavailable`, `host_silent`: the host cannot say that it has stopped it.
 * - `stopping`: it is placed elsewhere, and its stop here takes long.
 * - `runs_once`: its policy is `never`, and it runs: elsewhere it would run a second time.
 * - any other: why the last host that prepared it gave up.
 */
export const drainBlocks = [...reasons, 'pinned', 'stopping', 'runs_once'] as const;
export const DrainBlock = Type.Enum([...drainBlocks]);
export type DrainBlock = Static<typeof DrainBlock>;

export const BlockedContainer = Type.Object({ tenant_id: TenantId, id: ContainerId, reason: DrainBlock });
export type BlockedContainer = Static<typeof BlockedContainer>;

export const DrainProgress = Type.Object(
  {
    total: Type.Integer({ description: 'Containers that were on the host when the drain began, or came since.' }),
    moved: Type.Integer({ description: 'Containers moved off this host.' }),
    left: Type.Integer({ description: 'Containers still on this host: moving, waiting or blocked.' }),
    moving: Type.Integer({ description: 'Containers being prepared on another host, or stopped on this one.' }),
    blocked: Type.Array(BlockedContainer, {
      description: `Those that cannot leave now, and why; ${limits.drainBlocked} at most.`,
    }),
  },
  { additionalProperties: false },
);
export type DrainProgress = Static<typeof DrainProgress>;

/** `GET /hosts/:key` */
export const HostDetail = Type.Object(
  {
    ...HostView.properties,
    drain: nullable(
      Type.Object(DrainProgress.properties, {
        additionalProperties: false,
        description: 'Progress of the drain. Null if the host is not drained, or the progress is not known yet.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type HostDetail = Static<typeof HostDetail>;

/** Containers of one partition on a draining host. */
export const DrainShare = Type.Object({
  left: Type.Integer(),
  moving: Type.Integer(),
  blocked: Type.Array(BlockedContainer),
});
export type DrainShare = Static<typeof DrainShare>;
