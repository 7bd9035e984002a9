/** The record that makes a cluster one: bucket `cluster`, key `cluster`. Written once; every program checks it at start. */
import Type, { type Static } from 'typebox';

export const Cluster = Type.Object({
  /** UUID; the label by which an agent knows its own containers (invariant A4). */
  id: Type.String({ minLength: 1, maxLength: 64 }),
  partitions: Type.Integer({ minimum: 1, maximum: 256 }),
  /** Of the stored records. A program that does not know it refuses to run. */
  format: Type.Literal(1),
});
export type Cluster = Static<typeof Cluster>;

export const clusterKey = 'cluster';
