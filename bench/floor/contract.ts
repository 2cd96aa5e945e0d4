/** The moves of one payment, each written once and told once. */
const MOVES = ['awaiting_customer', 'authorized', 'settled'] as const;
export type Move = (typeof MOVES)[number];
/** Moves that a callback of the bank makes. */
export type CallbackMove = Exclude<Move, 'awaiting_customer'>;

/** Queues of lifecycles and of posts, two as in the product. */
export const FLOOR_QUEUE = 'bench-floor';
export const FLOOR_POST_QUEUE = 'bench-floor-posts';
/** Queue of the bank, whose process has no other. */
export const FLOOR_BANK_QUEUE = 'bench-floor-bank';

export const FLOOR_WORKFLOW = 'floorPayment';
export const FLOOR_POST_WORKFLOW = 'floorPost';
export const FLOOR_OPEN = 'open';

export function floorWorkflowId(paymentId: string): string {
  return `floor:${paymentId}`;
}

export function floorPostWorkflowId(paymentId: string, move: Move): string {
  return `floor-post:${paymentId}:${move}`;
}

/** Activities of the floor's bank. */
export interface FloorBank {
  openSession(input: { payment_id: string }): Promise<FloorSession>;
}

interface FloorSession {
  session_url: string;
}

/** Input of one bare write; a payment's first one keeps its session. */
export interface FloorMove extends FloorPost {
  session_url?: string;
}

/** Input of one bare post. */
export interface FloorPost {
  payment_id: string;
  move: Move;
}
