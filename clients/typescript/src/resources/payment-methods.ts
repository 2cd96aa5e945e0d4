import type { Api, CallOptions } from '../api';
import type { AvailablePaymentMethodList, PaymentMethodList } from '../schema';

export function createPaymentMethods(api: Api) {
  return {
    /** The whole catalog. */
    list: async (options?: CallOptions) =>
      (await api.get<PaymentMethodList>('/v1/payment-methods', {}, options)).data,
    /** Those that your account can take payments with now. */
    listAvailable: async (options?: CallOptions) =>
      (await api.get<AvailablePaymentMethodList>('/v1/payment-methods/available', {}, options))
        .data,
  };
}
