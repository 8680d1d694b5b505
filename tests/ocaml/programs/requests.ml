(* A server that handles as many requests as each line of its input says. A request leaves garbage of 33
   words; one in a thousand also leaves 77 words that stay. *)

let kept = ref []

let parse () = Sys.opaque_identity (Array.make 33 0)

let handle n =
  ignore (parse ());
  if n mod 1000 = 0 then kept := Array.make 77 n :: !kept

let () =
  let total = ref 0 in
  try
    while true do
      let requests = int_of_string (read_line ()) in
      for _ = 1 to requests do
        incr total;
        handle !total
      done;
      print_endline (string_of_int !total)
    done
  with End_of_file ->
    Gc.full_major ();
    ignore (Sys.opaque_identity !kept)
