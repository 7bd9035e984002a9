/** Every metric of the three programs and of the VPN area, from the tables that they fill. */
import {
  actorsMetrics,
  actorsPrefix,
  fleetGauges,
  longestWork,
  partitionGauges,
  scrubGauges,
} from '../../actors/metrics.ts';
import { gatewayGauges, gatewayMetrics, gatewayPrefix } from '../../gateway/metrics.ts';
import { forageGauges, forageMetrics, foragePrefix } from '../../gateway/vpn/metrics.ts';
import { agentGauges, agentMetrics, agentPrefix } from '../../host-agent/metrics.ts';
import { containerMetrics } from '../../host-agent/usage/container-metrics.ts';
import { commonPrefix, describe, type MetricDescription } from '../../lib/metric-table.ts';
import { processMetrics, standardMetrics } from '../../lib/metrics.ts';
import { natsMetrics } from '../../lib/nats/connection.ts';
import { spanMetrics } from '../../lib/trace/exporter.ts';

type Program = 'common' | 'gateway' | 'actors' | 'host-agent' | 'forage';

export const programMetrics: Readonly<Record<Program, readonly MetricDescription[]>> = {
  common: [...describe(commonPrefix, processMetrics, natsMetrics, spanMetrics), ...describe('', standardMetrics)],
  gateway: describe(gatewayPrefix, gatewayMetrics, gatewayGauges),
  actors: describe(actorsPrefix, actorsMetrics, longestWork, fleetGauges, partitionGauges, scrubGauges),
  'host-agent': describe(agentPrefix, agentMetrics, agentGauges, containerMetrics),
  forage: describe(foragePrefix, forageMetrics, forageGauges),
};
