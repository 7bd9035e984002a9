/** All dashboards. `npm run docs` writes them to deploy/grafana/dashboards/. */
import { containers } from './containers.ts';
import { boardText, type Board } from './grafana.ts';
import { actors, hosts } from './inside.ts';
import { overview } from './overview.ts';
import { vpn } from './vpn.ts';

export const boards: readonly Board[] = [overview, actors, hosts, containers, vpn];

/** Their files, by the path from the root of the repository. */
export const boardFiles: ReadonlyMap<string, () => string> = new Map(
  boards.map((board) => [`deploy/grafana/dashboards/${board.file}.json`, () => boardText(board)]),
);
