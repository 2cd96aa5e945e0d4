import { GROWTH } from '../../src/service/installation/database';
import { codes, table } from './markdown';

/** Rows that end; the page says that all others stay. */
export function growthTable(): string {
  const ending = GROWTH.filter(({ until }) => until !== 'always');
  const rows = ending.map(({ collections, until }) => [codes(collections), until]);
  return table(['Collections', 'Until'], rows);
}
