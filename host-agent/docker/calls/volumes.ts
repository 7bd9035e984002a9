/** Calls about volumes. */
import { decode, shapes, type Volume } from '../answers.ts';
import { labelFilter, parse, type EngineClient, type Labels } from './client.ts';

export interface VolumeCalls {
  /** Volumes that bear every one of the labels. */
  volumes(labels: Labels): Promise<Volume[]>;
  /** @returns `false` if containers use it. A volume that is gone counts as removed */
  removeVolume(name: string): Promise<boolean>;
}

export const volumeCalls = ({ ask }: EngineClient): VolumeCalls => ({
  volumes: async (labels) => {
    const name = 'volume list';
    const path = `/volumes?filters=${labelFilter(labels)}`;
    const reply = await ask({ name, method: 'GET', path, keep: shapes.volumes }, [200]);
    return parse(name, decode.volumes, reply).Volumes ?? [];
  },
  removeVolume: async (volume) => {
    const path = `/volumes/${encodeURIComponent(volume)}`;
    return (await ask({ name: 'volume remove', method: 'DELETE', path }, [204, 404, 409])).status !== 409;
  },
});
