(* Exceptions that fly over many frames while blocks are being sampled: the recorder's frames must
   never be among those that are unwound. *)

exception Found of string list

let rec search depth path =
  if depth = 0 then raise (Found path)
  else
    match search (depth - 1) (string_of_int depth :: path) with
    | () -> ()
    | exception Not_found -> assert false

let () =
  let total = ref 0 in
  for i = 1 to 4_000 do
    (match search (i mod 60) [] with
    | () -> assert false
    | exception Found path -> total := !total + List.length path);
    (* Raised by the runtime, from C. *)
    match int_of_string ("x" ^ string_of_int i) with
    | _ -> assert false
    | exception Failure _ -> incr total
  done;
  Printf.printf "%d\n" !total
