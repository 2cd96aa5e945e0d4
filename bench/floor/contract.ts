/** The moves of one payment, each written once and told once. */
const MOVES = ['awaiting_customer', 'authorized', 'settled'] as const;
export type Move = (typeof MOVES)[number];
/** Moves that a callback of the bank makes. */
export type CallbackMove = Exclude<Move, 'awaiting_customer'>;

/** Queues of lifecycles and of posts, two as in the product. */
export const FLOOR_QUEUE = 'bench-floor';
export const FLOOR_POST_QUEUE = 'bench-floor-posts';

export const FLOOR_WORKFLOW = 'floorPayment';
export const FLOOR_POST_WORKFLOW = 'floorPost';
export const FLOOR_OPEN = 'open';

export function floorWorkflowId(paymentId: string): string {
  return `floor:${paymentId}`;
}

export function floorPostWorkflowId(paymentId: string, move: Move): string {
  return `floor-post:${paymentId}:${move}`;
}

/** Input of one bare post. */
export interface FloorPost {
  payment_id: string;
  move: Move;
}
