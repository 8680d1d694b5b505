(* Blocks of every size: of one word, at the limit of the minor heap, and of millions of words. *)

let () =
  let kept = ref 0 in
  let use a = kept := !kept + Array.length (Sys.opaque_identity a) in
  for i = 1 to 100_000 do
    ignore (Sys.opaque_identity (ref i))
  done;
  for i = 0 to 600 do
    use (Array.make i 0)
  done;
  List.iter (fun n -> use (Array.make n 0)) [ 255; 256; 257; 4_096; 100_000; 3_000_000 ];
  ignore (Sys.opaque_identity (Bytes.create 8_000_000));
  ignore (Sys.opaque_identity (Float.Array.create 50_000));
  Printf.printf "%d\n" !kept
