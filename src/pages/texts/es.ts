import type { Texts } from './texts';

export const es: Texts = {
  name: 'Español',
  frame: {
    language: 'Idioma',
    secure: 'Página de pago segura.',
    secureOnce: 'Página de pago segura. Este enlace solo sirve una vez.',
    backToShop: 'Volver a la tienda',
    backTo: 'Volver a {merchant}',
    reference: 'Referencia',
  },
  pay: {
    sandbox: 'Entorno de pruebas: no se mueve dinero.',
    title: 'Pagar {amount} a {merchant}',
    summary: '{amount} a {merchant}',
    amount: 'Importe a pagar',
    method: 'Pagar con',
    payBy: 'Pagar antes del',
    cancel: 'Cancelar el pago',
    cancelBusy: 'Cancelando…',
  },
  method: {
    continue: 'Continuar a {method}',
    opening: 'Abriendo {method}',
    openingBusy: 'Abriendo {method}…',
  },
  bank: {
    name: 'su banco',
    continue: 'Continuar a su banco',
    opening: 'Abriendo su banco',
    openingBusy: 'Abriendo su banco…',
  },
  wait: {
    progress: 'Espere, por favor',
    opening: 'El banco está preparando su pago. Le llevaremos allí enseguida.',
    openingLater: 'Está tardando más de lo habitual. Permanezca en esta página, por favor.',
    title: 'Esperando la respuesta del banco',
    answer: 'Esta página continuará por sí sola en cuanto responda el banco.',
    answerLater: 'Todavía no hay respuesta. Si no ha pagado, vuelva al banco o cancele el pago.',
    backToBank: 'Volver al banco',
  },
  transfer: {
    show: 'Mostrar los datos bancarios',
    title: 'Pagar por transferencia',
    holder: 'Titular de la cuenta',
    reference: 'Concepto de la transferencia',
    copy: 'Copiar',
    exactly:
      'Transfiera exactamente este importe e indique el concepto. Sin él, la tienda no puede ' +
      'saber qué ha pagado.',
    confirmed:
      'El pago se confirma cuando llega la transferencia, normalmente el siguiente día hábil. ' +
      'Puede cerrar esta página: avisaremos a la tienda.',
    sent: 'Una vez enviada la transferencia, no cancele el pago.',
  },
  outcome: {
    open: 'Este pago está abierto',
    paid: 'Ha pagado correctamente',
    failed: 'El pago no se ha completado',
    cancelled: 'El pago se ha cancelado',
    expired: 'Este pago ha caducado',
  },
  notice: {
    unknown: {
      title: 'Este pago no existe',
      text: 'Es posible que el enlace esté incompleto. Vuelva a la tienda e inicie de nuevo el pago.',
    },
    taken: {
      title: 'Este enlace ya se ha utilizado',
      text:
        'Un enlace de pago solo sirve una vez, en el navegador que lo abrió primero. Continúe en ' +
        'él, o vuelva a la tienda y empiece de nuevo.',
    },
    expired: {
      title: 'Este enlace de pago ha caducado',
      text:
        'Ya no se puede pagar aquí. Si acaba de pagar, no vuelva a hacerlo: el banco informa a la ' +
        'tienda. De lo contrario, vuelva a la tienda y empiece de nuevo.',
    },
    ended: {
      title: 'Este pago está cerrado',
      text: 'El enlace ya no sirve. Vuelva a la tienda para ver su pedido.',
    },
    foreign: {
      title: 'Esta solicitud no procede de esta página',
      text: 'Abra de nuevo el enlace de pago y utilice los botones de la página.',
    },
    done: {
      title: 'Puede cerrar esta página',
      text: 'El banco informa por sí mismo a la tienda. Allí verá en su pedido si está pagado.',
    },
    trouble: {
      title: 'Esta página no está disponible en este momento',
      text:
        'El problema es nuestro. Inténtelo de nuevo en unos instantes; no es posible pagar dos ' +
        'veces.',
    },
  },
  crypto: {
    sandbox: 'Entorno de pruebas: no envíe fondos reales.',
    sendExactly: 'Envíe exactamente',
    stillToSend: 'Falta por enviar',
    qrCode: 'Código QR para un monedero: {asset} en {network}',
    addressCode:
      'El código contiene solo la dirección: elija {asset} en {network} en su monedero e introduzca el importe.',
    amountCode: 'Código con el importe, que no todos los monederos leen',
    networkAddress: 'Dirección de {network}',
    copyAmount: 'Copiar importe',
    copyAddress: 'Copiar dirección',
    copied: 'Copiado',
    amountCopied: 'Importe copiado',
    addressCopied: 'Dirección copiada',
    selectToCopy:
      'Pulse una vez el importe o la dirección para seleccionarlo todo y después cópielo.',
    openWallet: 'Abrir en el monedero',
    onlyThisAsset:
      'Envíe únicamente {asset} en la red {network}. Cualquier otra cosa puede perderse. La ' +
      'comisión de la red se paga aparte.',
    timeLeft: 'Tiempo restante',
    price: 'Precio',
    amountDue: 'Importe debido',
    cameSoFar: 'Recibido hasta ahora',
    surplus: 'Ha enviado {amount} de más. La tienda lo ve: pida allí la devolución.',
    playPayer: 'Simular el pago',
    deposits: 'Importes recibidos',
    confirmations: 'Confirmaciones',
    confirmationsOf: '{count} de {required} confirmaciones',
    confirmed: 'Confirmado',
    heldLate: 'Llegó demasiado tarde: consulte a la tienda',
    held: 'En revisión',
    rejected: 'No aceptado: consulte a la tienda',
  },
  stage: {
    top_up: {
      title: 'Ha llegado una parte del importe',
      text:
        'Envíe el resto a la misma dirección antes de que termine el tiempo. No hace falta que ' +
        'empiece de nuevo.',
    },
    confirming: {
      title: 'Su pago se está confirmando',
      text: 'Puede cerrar esta página: nosotros avisamos a la tienda.',
    },
    received: {
      title: 'Pago recibido',
      text: 'Hemos avisado a la tienda. Puede cerrar esta página.',
    },
    short: {
      title: 'No ha llegado a tiempo un importe suficiente',
      text:
        'No envíe nada más, por favor. Su dinero no se ha perdido: consulte a la tienda, que ' +
        'puede aceptarlo o devolverlo.',
    },
    held: {
      title: 'Su pago se está revisando',
      text:
        'No vuelva a pagar, por favor. Una persona lo está revisando y la tienda conocerá el ' +
        'resultado.',
    },
    expired: {
      title: 'El tiempo para pagar ha terminado',
      text:
        'No envíe nada más a esta dirección, por favor. Si acaba de pagar, no vuelva a hacerlo: ' +
        'no se ha perdido nada y la tienda puede ayudarle. De lo contrario, empiece de nuevo en ' +
        'la tienda.',
    },
  },
};
