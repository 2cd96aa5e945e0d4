import { type Api, type CallOptions, route } from '../api';
import type {
  AdvanceClock,
  Clock,
  CryptoPayment,
  CryptoSettlement,
  Payment,
  Payout,
  Refund,
  SimulateCryptoPayment,
  SimulateCryptoSettlement,
  SimulatePayment,
  SimulatePayout,
  SimulateRefund,
} from '../schema';

/** Reports as the bank of the sandbox. A report acts each time, so it is not repeated when it fails. */
export function createSandbox(api: Api) {
  return {
    getClock: (options?: CallOptions) => api.get<Clock>('/v1/sandbox/clock', {}, options),
    /** Begins to move the clock of your sandbox; read it until it is there. */
    advanceClock: (body: AdvanceClock, options?: CallOptions) =>
      api.postOnce<Clock>('/v1/sandbox/clock', body, options),
    /** Ends an advance where the clock is. */
    stopClock: (options?: CallOptions) => api.delete<Clock>('/v1/sandbox/clock', options),
    simulatePayment: (id: string, body: SimulatePayment, options?: CallOptions) =>
      api.postOnce<Payment>(route`/v1/sandbox/payments/${id}/simulate`, body, options),
    simulateRefund: (id: string, body: SimulateRefund, options?: CallOptions) =>
      api.postOnce<Refund>(route`/v1/sandbox/refunds/${id}/simulate`, body, options),
    simulatePayout: (id: string, body: SimulatePayout, options?: CallOptions) =>
      api.postOnce<Payout>(route`/v1/sandbox/payouts/${id}/simulate`, body, options),
    simulateCryptoPayment: (id: string, body: SimulateCryptoPayment, options?: CallOptions) =>
      api.postOnce<CryptoPayment>(route`/v1/sandbox/crypto/payments/${id}/simulate`, body, options),
    simulateCryptoSettlement: (id: string, body: SimulateCryptoSettlement, options?: CallOptions) =>
      api.postOnce<CryptoSettlement>(
        route`/v1/sandbox/crypto/settlements/${id}/simulate`,
        body,
        options,
      ),
  };
}
