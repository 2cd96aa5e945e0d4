import { GROWTH } from '../../src/service/growth';
import { codes, table } from './markdown';

export function growthTable(): string {
  const rows = GROWTH.map(({ what, collections, until }) => [what, codes(collections), until]);
  return table(['What', 'Collections', 'Until'], rows);
}
