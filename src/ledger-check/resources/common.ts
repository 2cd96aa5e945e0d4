import { omitUndefined } from '../../domain/defined';
import type { Direction, Movement } from '../../domain/movement/movement';
import { bookId } from '../../ledger/entries';
import {
  buildMovementHeld,
  buildMovementResolved,
  type MovingKind,
} from '../../ledger/resource-entries';
import type { ResourceDocument } from '../../store/resource';
import type { ExpectedStep } from '../rule';

/** Fields that a rule may read, since each part has them. */
export const COMMON = ['account_id', 'livemode', 'currency', 'status'] as const;

export interface WithMovements {
  movements: readonly Movement[];
}

type Moved = Pick<ResourceDocument, 'account_id' | 'livemode' | 'connector' | 'currency'> &
  WithMovements & { balance_account?: string };

/** Lists what is in suspense, or was, in the book of its currency. */
export function listHeld(kind: MovingKind, { movements, ...owner }: Moved): ExpectedStep[] {
  return movements.flatMap((movement): ExpectedStep[] => {
    if (movement.reason === null) return [];
    const { entry } = buildMovementHeld(kind, { ...owner, _id: '' }, movement, '');
    return [{ step: movement.id, lines: [...entry.lines], book: bookId(entry) }];
  });
}

/** Lists what has left suspense by entries of its own. */
export function listResolved(kind: MovingKind, { movements, ...owner }: Moved): ExpectedStep[] {
  const resource = { ...owner, _id: '' };
  return movements.flatMap(({ resolutions, ...movement }) =>
    resolutions.map((resolution, index): ExpectedStep => {
      const before = { ...movement, resolutions: resolutions.slice(0, index) };
      const { entry } = buildMovementResolved(kind, resource, before, resolution, { at: '' });
      const { step, lines } = entry;
      return { ...omitUndefined({ step }), lines: [...lines], book: bookId(entry) };
    }),
  );
}

/** Smallest units that entries of the resource took out of suspense. */
export function sumFromSuspense(movements: readonly Movement[], direction: Direction): bigint {
  return movements
    .filter((movement) => movement.direction === direction && movement.reason !== null)
    .reduce((sum, { applied }) => sum + BigInt(applied), 0n);
}
