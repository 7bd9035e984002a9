/** Random request bodies: any JSON, and objects with the API's keys and valid or odd values. */
import { createUser } from '@nats-io/nkeys';
import fc from 'fast-check';

const publicKey = createUser().getPublicKey();

export const bodies = fc.oneof(
  fc.jsonValue(),
  fc.record(
    {
      name: fc.oneof(fc.constantFrom('web', '', 7), fc.string()),
      env: fc.oneof(fc.dictionary(fc.string(), fc.string()), fc.jsonValue()),
      ports: fc.oneof(fc.array(fc.oneof(fc.integer(), fc.string(), fc.jsonValue())), fc.jsonValue()),
      host_key: fc.oneof(fc.constantFrom('h1', null), fc.jsonValue()),
      repository: fc.oneof(fc.constant('a/b'), fc.jsonValue()),
      cpu_limit: fc.constantFrom('0.5', '1', 1, null),
      mem_limit: fc.constantFrom('256m', 'x', 1, null),
      regions: fc.jsonValue(),
      caps: fc.oneof(fc.dictionary(fc.constantFrom('containers', 'cpu_millis', 'x'), fc.jsonValue()), fc.jsonValue()),
      region_caps: fc.jsonValue(),
      key: fc.oneof(fc.constant('h1'), fc.jsonValue()),
      region: fc.oneof(fc.constant('eu'), fc.jsonValue()),
      cordoned: fc.jsonValue(),
      jti: fc.jsonValue(),
      secret_refs: fc.jsonValue(),
      config_files: fc.jsonValue(),
      join_token: fc.oneof(fc.constant(`lsj_h1_${'a'.repeat(43)}`), fc.jsonValue()),
      public_key: fc.oneof(fc.constant(publicKey), fc.constant(`U${'A'.repeat(55)}`), fc.jsonValue()),
      tenant_id: fc.constant('rival'),
    },
    { requiredKeys: [] },
  ),
);
