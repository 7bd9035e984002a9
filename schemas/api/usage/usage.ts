/** Usage of containers, for a bill. */
import Type, { type Static } from 'typebox';
import { ContainerId, TenantId } from '../../ids.ts';
import { metadataNames, optionalOf } from '../fields/container.ts';
import { nullable } from '../nullable.ts';

/** Of all containers together, or of one. */
const amounts = {
  container_seconds: Type.Number({ minimum: 0, description: 'Time that containers ran, to the millisecond.' }),
  cpu_seconds: Type.Number({ minimum: 0, description: 'CPU time of all cores, to the millisecond.' }),
  mem_byte_seconds: Type.String({
    pattern: '^\\d+$',
    description: 'Memory in use × time, as a decimal string, because it may not fit a double.',
  }),
};

export const UsageAmounts = Type.Object(amounts, { additionalProperties: false });

export const ContainerUsage = Type.Object(
  {
    id: ContainerId,
    name: nullable(Type.String({ description: 'Null if the name is no longer known.' })),
    ...amounts,
    ...optionalOf(metadataNames),
  },
  { additionalProperties: false },
);

export const UsageView = Type.Object(
  {
    from: Type.String({ description: 'The start of the first hour.' }),
    to: Type.String({ description: 'The end of the last hour.' }),
    total: UsageAmounts,
    containers: Type.Array(ContainerUsage),
  },
  { additionalProperties: false },
);
export type UsageView = Static<typeof UsageView>;

export const usageGrains = ['hour', 'tenant', 'container'] as const;

/** Usage of an hour, a tenant or a container; a row has the fields of its kind. */
export const OperatorUsage = Type.Object(
  {
    at: Type.Optional(Type.String({ description: 'By hour: its start.' })),
    tenant_id: Type.Optional(TenantId),
    container_id: Type.Optional(ContainerId),
    name: Type.Optional(nullable(Type.String({ description: 'Of the container. Null if it is no longer known.' }))),
    ...amounts,
  },
  { additionalProperties: false },
);
export type OperatorUsage = Static<typeof OperatorUsage>;
