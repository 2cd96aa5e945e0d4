import type { Movement } from '../domain/movement/movement';
import { type MovementDocument, toMovement } from '../store/movements';
import type { Read } from './snapshot';

/** Adds the movements of each, the oldest first. */
export async function withMovements<Row extends { _id: string }>(
  read: Read,
  rows: readonly Row[],
): Promise<(Row & { movements: Movement[] })[]> {
  const byResource = new Map<string, Movement[]>(rows.map(({ _id }) => [_id, []]));
  const filter = { resource_id: { $in: [...byResource.keys()] } };
  const movements = read<MovementDocument>('bank_movements', filter, { sort: { order: 1 } });
  for await (const row of movements) byResource.get(row.resource_id ?? '')?.push(toMovement(row));
  return rows.map((row) => ({ ...row, movements: byResource.get(row._id) ?? [] }));
}
