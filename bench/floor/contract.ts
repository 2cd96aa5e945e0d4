const TRANSITIONS = ['awaiting_customer', 'authorized', 'settled'] as const;
export type Transition = (typeof TRANSITIONS)[number];
export type Reported = Exclude<Transition, 'awaiting_customer'>;

/** Queues of payments and of posts, two as in the product. */
export const FLOOR_QUEUE = 'bench-floor';
export const FLOOR_POST_QUEUE = 'bench-floor-posts';
export const FLOOR_BANK_QUEUE = 'bench-floor-bank';

export const FLOOR_WORKFLOW = 'floorPayment';
export const FLOOR_POST_WORKFLOW = 'floorPost';
export const FLOOR_OPEN = 'open';

export function floorWorkflowId(paymentId: string): string {
  return `floor:${paymentId}`;
}

export function floorPostWorkflowId(paymentId: string, transition: Transition): string {
  return `floor-post:${paymentId}:${transition}`;
}

export interface FloorBank {
  openSession(input: { payment_id: string }): Promise<FloorSession>;
}

interface FloorSession {
  session_url: string;
}

export interface FloorWrite extends FloorPost {
  session_url?: string;
}

export interface FloorPost {
  payment_id: string;
  transition: Transition;
}
