declare const GLOSSARY: [meaning: string, forms: string[]][];
/** An opaque identifier of the server's version. */
declare const SERVER: string;
